"""Samplers of Bingham laws against quadrature and exact laws; PPCA; the published mechanisms for covariances."""

import math

import numpy as np
import pytest

import lessnoise as ln
from lessnoise.noise import Stream
from lessnoise.noise.unit_vector import GRID, Bingham, Normals
from lessnoise.pca import ppca, sample_bingham, sample_frame
from lessnoise.pca.bingham import MarkovChain, sample_sequence
from lessnoise.pca.complement import Proposal, draw_orthogonal


def bingham_second_moments(falls):
    """E x_i^2 for density exp(-sum f_i x_i^2) on the sphere of R^3, by quadrature over the height and the angle."""
    height = np.polynomial.legendre.leggauss(200)
    angle = np.linspace(0, 2 * np.pi, 400, endpoint=False)
    z, phi = np.meshgrid(height[0], angle, indexing="ij")
    radius = np.sqrt(1 - z**2)
    points = np.stack([radius * np.cos(phi), radius * np.sin(phi), z])
    weights = height[1][:, None] * np.exp(-np.tensordot(falls, points**2, 1))
    return np.array([np.sum(weights * points[i] ** 2) for i in range(3)]) / weights.sum()


@pytest.mark.slow
def test_the_vector_sampler_has_the_known_moments():
    falls = np.array([0.0, 2.0, 5.0])
    exact = bingham_second_moments(falls)
    assert exact[0] == pytest.approx(0.628, abs=5e-4)
    rng = np.random.default_rng(0)
    squares = np.array([sample_bingham(-np.diag(falls), rng) for _ in range(10_000)]) ** 2
    errors = squares.std(axis=0) / len(squares) ** 0.5
    np.testing.assert_array_less(np.abs(squares.mean(axis=0) - exact), 6 * errors)
    assert abs(squares[:, 0].mean() - 0.886) > 20 * errors[0]  # what dividing by the envelope would give


@pytest.mark.slow
def test_it_turns_with_the_matrix_and_needs_no_scale():
    rng = np.random.default_rng(1)
    turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    matrix = turn @ np.diag([0.0, -2.0, -5.0]) @ turn.T + 1e3 * np.eye(3)
    draws = np.array([sample_bingham(matrix, rng) @ turn for _ in range(5000)]) ** 2
    np.testing.assert_allclose(draws.mean(axis=0), bingham_second_moments(np.array([0.0, 2, 5])), atol=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("strength", [0.0, 1e-9, 1e6])
def test_extreme_strengths(strength):
    draws = np.array(
        [sample_bingham(strength * np.diag([1.0, 0, 0, 0]), np.random.default_rng(seed)) for seed in range(400)]
    )
    np.testing.assert_allclose(np.linalg.norm(draws, axis=1), 1.0)
    first = (draws[:, 0] ** 2).mean()
    assert first == pytest.approx(0.25, abs=0.07) if strength < 1 else first > 0.99999


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize("strength", [0.0, 3.0, 1e4])
def test_floats_and_exact_numbers_draw_the_same_vector(size, strength):
    rng = np.random.default_rng(size)
    rows = rng.normal(size=(9, size))
    basis = np.linalg.qr(rng.normal(size=(size, size)))[0][:, : max(size - 1, 1)]
    for inside in (None, basis):
        for seed in range(8):
            draws = [
                Bingham(rows.T @ rows, strength, inside, margin).draw(Normals(Stream.of(np.random.default_rng(seed))))
                for margin in (0.0, math.inf)
            ]
            np.testing.assert_array_equal(draws[0], draws[1])
            assert (draws[0] / GRID == np.rint(draws[0] / GRID)).all()


def test_the_envelope_covers_the_density():
    """The probability to accept is never above 1: at the eigenvectors, at random, and near the worst direction."""
    rng = np.random.default_rng(0)
    for size, strength in ((2, 1.0), (6, 40.0), (30, 3e3)):
        rows = rng.normal(size=(50, size))
        law = Bingham(rows.T @ rows, strength / 50)
        inner = strength / 50 * rows.T @ rows
        omega = np.linalg.inv(law.factor @ law.factor.T)
        vectors = np.linalg.eigh(inner)[1]
        points = np.concatenate(
            [vectors.T, rng.normal(size=(2000, size)), rng.normal(size=(2000, size)) @ law.factor.T]
        )
        mixed = (
            np.cos(np.linspace(0, np.pi, 500))[:, None] * vectors[:, -1]
            + np.sin(np.linspace(0, np.pi, 500))[:, None] * vectors[:, 0]
        )
        points = np.concatenate([points, mixed])
        points /= np.linalg.norm(points, axis=1)[:, None]
        logs = np.einsum("ni,ij,nj->n", points, inner, points) - law.top
        logs += size / 2 * np.log(np.einsum("ni,ij,nj->n", points, omega, points)) - law.log_peak
        assert logs.max() <= 0.0
        assert logs.max() > -1.0  # and it is no more than it has to be


@pytest.mark.slow
def test_gibbs_frames_have_the_exact_law_in_three_dimensions():
    # A plane in R^3 is its normal u, and tr(V^T S V) = tr S - u^T S u: the normal is a Bingham vector of -S.
    values, rng = np.array([0.0, 2.0, 5.0]), np.random.default_rng(2)
    exact = bingham_second_moments(values)  # density exp(-u^T S u)
    normals = []
    for _ in range(800):
        frame = sample_frame(np.diag(values), 2, rng, sweeps=10).frame
        normals.append(np.cross(frame[:, 0], frame[:, 1]))
    squares = np.array(normals) ** 2
    errors = squares.std(axis=0) / len(squares) ** 0.5
    np.testing.assert_array_less(np.abs(squares.mean(axis=0) - exact), 6 * errors)
    assert abs(squares[:, 0].mean() - 1 / 3) > 10 * errors[0]  # it has left its uniform start


# One step of the chain, without a basis of the complement.


@pytest.mark.parametrize(("size", "count"), [(2, 1), (7, 2), (12, 6), (40, 19)])
def test_a_step_of_the_chain_proposes_the_normal_law_of_the_complement(size, count):
    rng = np.random.default_rng(size)
    values = np.sort(rng.exponential(5.0, size))[::-1]
    others = np.linalg.qr(rng.standard_normal((size, count)))[0]
    basis = np.linalg.qr(others, mode="complete")[0][:, count:]
    inner = np.linalg.eigvalsh(basis.T @ np.diag(values) @ basis)
    for level in (2 * inner[-1] + 0.3, 2 * inner[-1] + 1.0, 2 * values[0] + 50.0):
        proposal = Proposal.at(level - 2 * values, others)
        covariance = basis @ np.linalg.inv(basis.T @ np.diag(level - 2 * values) @ basis) @ basis.T
        assert proposal.size == pytest.approx(np.trace(covariance), rel=1e-8)
        linear = np.array([proposal.draw(unit)[0] for unit in np.eye(size)]).T  # y = linear z
        z = rng.standard_normal(size)
        y, form = proposal.draw(z)
        assert form == pytest.approx(y @ ((level - 2 * values) * y), rel=1e-6)
        np.testing.assert_allclose(linear @ linear.T, covariance, atol=1e-8 * np.abs(covariance).max())
        np.testing.assert_allclose(others.T @ linear, 0.0, atol=1e-9 * np.abs(linear).max())
    assert Proposal.at(2 * inner[-1] * (1 - 1e-6) - 2 * values, others) is None


@pytest.mark.slow
def test_a_step_of_the_chain_has_the_law_of_a_bingham_vector():
    # In the complement of two vectors of R^5 it is a Bingham vector of R^3, whose moments quadrature gives.
    rng, source = np.random.default_rng(5), Normals(Stream.of(np.random.default_rng(6)))
    values, others = np.array([9.0, 7.0, 3.0, 1.0, 0.0]), np.linalg.qr(rng.standard_normal((5, 2)))[0]
    basis = np.linalg.qr(others, mode="complete")[0][:, 2:]
    inner, turn = np.linalg.eigh(basis.T @ np.diag(values) @ basis)
    level, squares = None, []
    for _ in range(2000):
        x, level = draw_orthogonal(values, others, source, level)
        squares.append((turn.T @ basis.T @ x) ** 2)
    errors = np.std(squares, axis=0) / 2000**0.5
    difference = np.mean(squares, axis=0) - bingham_second_moments(inner[-1] - inner)
    np.testing.assert_array_less(np.abs(difference), 6.5 * errors)
    assert np.abs(np.mean(squares, axis=0) - 1 / 3).max() > 20 * errors.max()  # not uniform


def test_a_step_that_floats_cannot_make_is_made_with_a_basis():
    values = 1e9 * np.arange(6.0)[::-1] ** 2
    others = np.eye(6)[:, :3] + 1e-7
    source = Normals(Stream.of(np.random.default_rng(0)))
    assert draw_orthogonal(values, np.linalg.qr(others)[0], source) is None
    frame = sample_frame(np.diag(values), 4, np.random.default_rng(0), sweeps=3).frame
    np.testing.assert_allclose(frame.T @ frame, np.eye(4), atol=1e-10)
    assert np.sum(frame[:4] ** 2) > 3.9


def test_wide_frames_find_what_stands_out():
    values = np.concatenate([np.full(5, 4000.0), np.zeros(195)])
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((200, 200)))[0]
    chain = sample_frame(turn @ np.diag(values) @ turn.T, 5, np.random.default_rng(1), sweeps=6)
    np.testing.assert_allclose(chain.frame.T @ chain.frame, np.eye(5), atol=1e-12)
    inside = np.sum((turn[:, :5].T @ chain.frame) ** 2) / 5
    # Each column has about (200 - 5)/(2 * 4000) of its square outside.
    assert 1.0 - inside == pytest.approx(195 / 8000, rel=0.4)


@pytest.mark.slow
def test_one_by_one_each_component_is_a_bingham_vector_in_the_complement():
    from scipy.special import ive

    values, rng, shifts, squares = np.array([0.0, -2.0, -5.0]), np.random.default_rng(12), [], []
    for _ in range(3000):
        frame = sample_sequence(np.diag(values), 2, rng)
        first, second = frame.T
        squares.append(first**2)
        # In a plane the law is that of von Mises: E x^T S x = (a + b)/2 + (a - b)/2 I_1(k)/I_0(k), k = (a - b)/2.
        plane = np.linalg.qr(first[:, None], mode="complete")[0][:, 1:]
        low, high = np.linalg.eigvalsh(plane.T @ np.diag(values) @ plane)
        half = (high - low) / 2
        shifts.append(second @ (values * second) - (high + low) / 2 - half * ive(1, half) / ive(0, half))
    errors = np.std(squares, axis=0) / 3000**0.5
    np.testing.assert_array_less(np.abs(np.mean(squares, axis=0) - bingham_second_moments(-values)), 6 * errors)
    assert abs(np.mean(shifts)) < 6 * np.std(shifts) / 3000**0.5
    assert np.std(shifts) > 0.3  # it is a draw, not the maximum


@pytest.mark.slow
def test_full_frames_are_uniform():
    # tr(V^T S V) = tr S for every orthogonal V.
    rng = np.random.default_rng(3)
    entries = [sample_frame(np.diag([50.0, 0.0]), 2, rng, sweeps=2).frame[0, 0] ** 2 for _ in range(2000)]
    assert np.mean(entries) == pytest.approx(0.5, abs=0.06)


@pytest.mark.slow
def test_the_diagnostics_tell_a_moving_chain_from_a_settled_one():
    rng = np.random.default_rng(4)
    settled = sample_frame(np.diag([9.0, 5, 1, 0]), 2, rng, sweeps=400)
    assert settled.split_shift < 5
    assert settled.effective_draws > 50
    moving = MarkovChain(settled.frame, np.linspace(0, 100, 400) + rng.standard_normal(400))
    assert moving.split_shift > 2 * 5 or moving.effective_draws < 5


@pytest.mark.slow
@pytest.mark.parametrize(("neighbours", "factor"), [("replace", 0.5), ("add/remove", 1.0)])
def test_one_component_keeps_pure_privacy_between_the_worst_neighbours(neighbours, factor):
    # ln of the densities of the law, by quadrature, for G = diag(3, 2, 1) with and without one row, or another one.
    epsilon, angles = 1.3, np.linspace(0, np.pi, 2001)
    x = np.stack([np.cos(angles), np.sin(angles)])

    def log_density(gram):
        weights = factor * epsilon * np.einsum("ia,ij,ja->a", x, gram, x)
        return weights - math.log(np.trapezoid(np.exp(weights), angles))

    base, row, other = np.diag([3.0, 2.0]), np.diag([1.0, 0.0]), np.diag([0.0, 1.0])
    first = log_density(base + row)
    second = log_density(base + (other if neighbours == "replace" else 0.0))
    assert 0.3 * epsilon < np.abs(first - second).max() <= epsilon
    # The sampler has this density: E x_1^2 agrees.
    rng = np.random.default_rng(5)
    drawn = [
        ppca(base + row, components=1, epsilon=epsilon, clip_norm=1, neighbours=neighbours, rng=rng).value[0, 0] ** 2
        for _ in range(4000)
    ]
    exact = np.trapezoid(np.exp(first) * x[0] ** 2, angles)
    assert np.mean(drawn) == pytest.approx(exact, abs=6 * np.std(drawn) / 4000**0.5)


def test_what_ppca_says_of_itself():
    gram = np.diag([90.0, 40.0, 1.0])
    one = ppca(gram, components=1, epsilon=0.7, clip_norm=1)
    assert (one.certificate.guarantee.delta, one.certificate.claim_holds, one.certificate.private) == (0.0, True, True)
    two = ppca(gram, components=2, epsilon=0.7, clip_norm=1, sweeps=5, rng=np.random.default_rng(0))
    assert (two.certificate.guarantee.delta, two.certificate.claim_holds, two.certificate.private) == (1.0, None, False)
    assert any("no guarantee is proved" in line for line in two.certificate.assumptions)
    assert two.certificate.to_dict()["mechanism"]["sweeps"] == 5
    both = ppca(gram, components=2, epsilon=0.7, clip_norm=1, one_by_one=True)
    assert (both.certificate.guarantee.delta, both.certificate.claim_holds, both.chain) == (0.0, True, None)
    assert any("floating point is covered" in line for line in both.certificate.assumptions)
    with pytest.raises(ln.InvalidInput, match="components=4"):
        ppca(gram, components=4, epsilon=1, clip_norm=1)
    with pytest.raises(ln.InvalidInput, match="too coarse to protect one row"):
        ppca(2.0**28 * gram, components=1, epsilon=1, clip_norm=1)
    with pytest.raises(ln.InvalidInput, match="not symmetric"):
        ppca(np.triu(np.ones((3, 3))), components=1, epsilon=1, clip_norm=1)


# Published mechanisms.


def test_mod_sulq_has_the_known_deviation_and_wastes_noise():
    published = ln.mod_sulq(epsilon=1, delta=0.01, features=10, records=1000)
    assert published.standard_deviation == pytest.approx(0.0441491, abs=5e-8)
    assert published.check().holds
    needed = ln.analytic_gaussian(epsilon=1, delta=0.01, sensitivity=2**0.5 / 1000, shape=55)
    assert needed.standard_deviation == pytest.approx(0.00265572, rel=1e-5)
    assert ln.Mechanism.from_json(published.to_json()) == published


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 10, 50])
def test_wishart_noise_often_fails_to_dominate_a_record(size):
    mechanism = ln.wishart(epsilon=1, features=size, records=1)
    rng, record = np.random.default_rng(6), np.ones(size) / size**0.5
    trials = 2000
    failures = sum(np.linalg.eigvalsh(mechanism.noise(rng) - np.outer(record, record))[0] < 0 for _ in range(trials))
    exact = 1 - math.exp(-1 / 3)
    assert failures / trials == pytest.approx(exact, abs=6 * (exact * (1 - exact) / trials) ** 0.5)
    bracket = mechanism.delta(1.0)
    assert exact in bracket
    assert bracket.relative_width < 1e-9
    assert mechanism.delta(50.0).lower == pytest.approx(exact)  # no epsilon helps
    assert mechanism.epsilon(0.28).upper == math.inf


def test_the_wishart_curve_below_a_third_of_epsilon_holds_the_truth():
    # d = 1: W ~ s chi^2_2 is exponential, and its curve is elementary.
    rate = 1 / 3
    mechanism = ln.wishart(epsilon=1, features=1, records=1)
    for epsilon in (0.0, 0.1, 0.3, 0.4, 2.0):
        # From A to A + 1 the outputs below 1 are impossible; elsewhere the loss is -rate, and rate the other way.
        truth = max(1 - math.exp(-rate), max(1 - math.exp(epsilon - rate), 0.0))
        assert truth in mechanism.delta(epsilon)


@pytest.mark.slow
def test_the_wishart_audit_finds_the_failure():
    mechanism = ln.wishart(epsilon=1, features=2, records=1)
    report = ln.audit(
        mechanism,
        np.zeros((2, 2)),
        samples=1_000_000,
        confidence=0.95,
        attacks="likelihood",
        rng=np.random.default_rng(1),
        progress=False,
    )
    assert report.refuted
    assert 0.28 <= report.delta <= 1 - math.exp(-1 / 3)


@pytest.mark.slow
def test_wishart_loss_and_description():
    mechanism = ln.wishart(epsilon=2, features=3, records=10, clip_norm=2)
    rng = np.random.default_rng(8)
    losses = [np.sum(mechanism.noise(rng) ** 2) for _ in range(4000)]
    assert np.mean(losses) == pytest.approx(mechanism.expected_loss, rel=0.1)
    assert ln.Mechanism.from_json(mechanism.to_json()) == mechanism
    with pytest.raises(ln.InvalidInput, match="not known"):
        mechanism.loss_quantile(0.5)
    with pytest.raises(ln.InvalidInput, match="is not square"):
        ln.Mechanism("wishart", ln.Wishart(1.0), (2, 3), 1.0)
    with pytest.raises(ln.InvalidInput, match="neighbour lies inf"):
        ln.audit(mechanism, np.zeros((3, 3)), np.eye(3) * 0.4, samples=1000)
