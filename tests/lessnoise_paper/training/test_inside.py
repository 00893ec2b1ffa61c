"""The budget of a step, and training inside the range of Remark 1: each number by another route than the library's."""

import math

import numpy as np
import pytest
from scipy import integrate, optimize, stats

from lessnoise_paper.training import inside, results, settings
from tests.helpers import oracles

CONFIDENCE = 1e-9  # of a false alarm


def strong_composition(each, case):
    """The paper's equation for (E/q) steps of q epsilon0, delta' = 1e-10."""
    steps, q = case.epochs / case.rate, case.rate
    return math.sqrt(2 * steps * math.log(1e10)) * q * each + steps * q * each * (math.exp(q * each) - 1)


def published_variance(case, epsilon, delta):
    """sigma_* = 2/(epsilon psi), psi = (delta Gamma((M-1)/2)/(sqrt(pi) Gamma(M/2)))^(2/(M-2))."""
    m = case.parameters
    log_base = math.log(delta) + math.lgamma((m - 1) / 2) - 0.5 * math.log(math.pi) - math.lgamma(m / 2)
    return 2.0 / (epsilon * math.exp(2.0 / (m - 2) * log_base))


def test_budgets_of_a_step_solve_the_papers_equation():
    found = {(one.data, one.claimed_epsilon): one for one in inside.step_budgets()}
    assert len(found) == 4
    for (data, total), one in found.items():
        case = settings.CASES[data]
        root = optimize.brentq(lambda each, case=case, total=total: strong_composition(each, case) - total, 1e-9, 50)
        assert one.solved == pytest.approx(root, rel=1e-9)
        assert one.limit == 1 / case.parameters
        assert one.times_the_limit == pytest.approx(one.printed * case.parameters)
        rounded = round(one.solved, 2)
        assert (rounded == pytest.approx(one.printed, abs=0.011)) == (data == "mnist")


def test_a_step_inside_the_range_has_the_published_noise_and_far_more_than_its_delta():
    for one in inside.inside_range():
        case = settings.CASES[one.data]
        assert one.step_epsilon * case.parameters == pytest.approx(one.share)
        assert one.step_epsilon < 1 / case.parameters
        assert one.step_delta == pytest.approx((1e-5 - 1e-10) / case.epochs, rel=1e-4)
        # The total is the same equation over the whole number of steps.
        assert one.claimed_epsilon == pytest.approx(strong_composition(one.step_epsilon, case), rel=1e-4)
        variance = published_variance(case, one.step_epsilon, one.step_delta)
        assert one.length == pytest.approx(math.sqrt(variance), rel=1e-4)
        assert one.gaussian_lengths == pytest.approx([s * math.sqrt(case.parameters) for s in (1.1, 0.5)])
        # In so many dimensions R1SMG is a Gaussian whose deviation a|z| everybody sees; z is standard normal.
        a = one.length / math.sqrt(case.parameters)
        expected, _ = integrate.quad(lambda z, a=a: 2 * stats.norm.pdf(z) * math.erf(0.5**1.5 / (a * z)), 0, 12)
        assert one.step_exact.lower == pytest.approx(expected, abs=3e-3)  # epsilon0 is next to 0
        assert one.step_exact.upper - one.step_exact.lower < 1e-4
        setting = (case.parameters, 1.0, 2.0, math.sqrt(2 * variance), 1.0, one.step_epsilon)
        exact = oracles.delta_positive(oracles.Case(*setting))
        assert one.step_exact.lower - 1e-6 <= exact <= one.step_exact.upper + 1e-6


def losses_of_trainings(case, variance, count, rng):
    """Privacy losses of whole trainings, with the record, drawn from the definition of R1SMG.

    A noise vector of length r at cosine c to the record's gradient has density r^-(M-1) exp(-r^2/(2 sigma_*)), but
    for a factor; a step takes the record with probability q.
    """
    m, q, total = case.parameters, case.rate, np.zeros(count)
    for _ in range(case.steps):
        radius = math.sqrt(variance) * np.abs(rng.standard_normal(count))
        along = rng.standard_normal(count)
        cosine = along / np.sqrt(along**2 + rng.chisquare(m - 1, count))
        moved = np.sqrt(radius**2 + 1 + 2 * radius * cosine)  # from the sum without the record, if it took part
        other = np.sqrt(radius**2 + 1 - 2 * radius * cosine)  # from the sum with the record, if it did not
        took_part = rng.random(count) < q
        length_without = np.where(took_part, moved, radius)
        length_with = np.where(took_part, radius, other)
        log_ratio = (m - 1) * np.log(length_without / length_with)
        log_ratio += (length_without**2 - length_with**2) / (2 * variance)
        total += np.logaddexp(math.log1p(-q), math.log(q) + log_ratio)
    return total


@pytest.mark.slow
@pytest.mark.parametrize(("share", "least"), [(0.99, 0.98), (0.01, 0.40)])
def test_the_composed_delta_is_that_of_drawn_trainings(share, least):
    one, case, count = inside.inside("mnist", share), settings.CASES["mnist"], 1500
    assert one.exact.lower >= least > one.claimed_delta
    losses = losses_of_trainings(case, one.length**2, count, np.random.default_rng(3))
    drawn = np.mean(-np.expm1(np.minimum(one.claimed_epsilon - losses, 0.0)))
    doubt = math.sqrt(math.log(2 / CONFIDENCE) / (2 * count))  # Hoeffding: the values are between 0 and 1
    assert one.exact.lower - doubt <= drawn <= one.exact.upper + doubt
    if share < 0.1:  # a claim of half the truth, or of twice, would be seen
        assert not 0.5 * one.exact.lower - doubt <= drawn <= 0.5 * one.exact.upper + doubt


@pytest.mark.slow
@pytest.mark.parametrize("data", ["mnist", "cifar10"])
def test_gaussian_noise_of_that_length_keeps_what_another_accountant_says(data):
    accounting = pytest.importorskip("dp_accounting")
    from dp_accounting.pld import PLDAccountant

    one, case = inside.inside(data, 0.99), settings.CASES[data]
    sigma = one.length / math.sqrt(case.parameters)
    event = accounting.PoissonSampledDpEvent(case.rate, accounting.GaussianDpEvent(sigma))
    theirs = PLDAccountant(value_discretization_interval=1e-3).compose(event, case.steps).get_epsilon(1e-5)
    assert one.gaussian_epsilon == pytest.approx(theirs, rel=0.01)


def test_training_inside_the_range_is_stored_with_its_settings():
    stored, study = results.read("inside"), results.read("mnist")
    for name in ("records", "batch", "learning_rate", "clip_norm"):
        assert stored[name] == study[name]
    assert {run["method"] for run in stored["runs"]} == {settings.INSIDE}
    lines = inside.trained_inside()
    ours = next(line for line in lines if line.method == settings.INSIDE)
    last = [run["test"][stored["epochs_done"] - 1] for run in stored["runs"]]
    assert (ours.accuracy, ours.least, ours.greatest) == pytest.approx((sum(last) / len(last), min(last), max(last)))
    assert ours.length > max(line.length for line in lines if line is not ours)
    assert "no privacy" in ours.guarantee
    for line in lines:
        if line.method == "dpsgd":  # the same epochs of the study's own runs
            runs = [r["test"] for r in study["runs"] if (r["method"], r["epsilon"]) == ("dpsgd", line.claimed_epsilon)]
            assert line.accuracy == pytest.approx(np.mean([run[line.epochs - 1] for run in runs]))
    assert inside.trained_inside(lambda name: None) == []
