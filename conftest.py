"""What all tests share: a cache of their own, the same examples in each run, and pages that say what they need.

Examples in docstrings and pages cannot carry a mark, so those that take long are named here.
"""

import importlib.util
import os
import re
import tempfile

import pytest
from hypothesis import settings

# The user's own cache folder is neither read nor filled.
os.environ["LESSNOISE_CACHE"] = os.environ.get("PYTEST_LESSNOISE_CACHE") or tempfile.mkdtemp(prefix="lessnoise-tests-")
os.environ["PYTEST_LESSNOISE_CACHE"] = os.environ["LESSNOISE_CACHE"]  # shared with the worker processes

# The command line's words are the same in every terminal and on every build server.
for name in ("FORCE_COLOR", "PY_COLORS", "CLICOLOR_FORCE", "GITHUB_ACTIONS", "TTY_COMPATIBLE", "TERMINAL_WIDTH"):
    os.environ.pop(name, None)
os.environ["COLUMNS"] = "80"

# A property test that fails, fails for everyone;
# `HYPOTHESIS_PROFILE=explore` looks for new examples.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

SLOW_EXAMPLES = {
    "README.md::README.md",
    "docs/guide/least-noise.md::least-noise.md",
    "docs/guide/pca.md::pca.md",
    "docs/migrate/diffprivlib.md::diffprivlib.md",
    "docs/migrate/opacus.md::opacus.md",
    "docs/migrate/opendp.md::opendp.md",
    "docs/studies/learning.md::learning.md",
    "docs/theory/paper.md::paper.md",
    "docs/theory/rank-one.md::rank-one.md",
    "docs/tutorial.md::tutorial.md",
    "src/lessnoise/mechanism/least/builder.py::lessnoise.mechanism.least.builder.loss_lower_bound",
    "src/lessnoise/noise/selftest.py::lessnoise.noise.selftest.run_selftest",
    "src/lessnoise_paper/theory/ranks.py::lessnoise_paper.theory.ranks.any_rank_bound",
}

if importlib.util.find_spec("torch") is None or importlib.util.find_spec("opacus") is None:  # the extra "learn"
    collect_ignore = [
        *(
            f"src/lessnoise/learn/{name}.py"
            for name in (
                *("answers", "batch", "comparison", "ghost", "gradients", "loader", "opacus_accountant"),
                *("optimizer", "privacy_engine", "processes", "watch", "across/loader", "across/optimizer"),
            )
        ),
        *(f"src/lessnoise_paper/training/{name}.py" for name in ("networks", "trainer", "features", "strong")),
    ]


# Repetitions that take long, beside others of the same kind; LESSNOISE_ALL_TESTS=1 runs them too.
LONG = {
    "tests/lessnoise/audit/test_audit.py::test_false_alarms_over_a_thousand_audits_of_correct_mechanisms",
    "tests/lessnoise/audit/test_hostile.py::test_what_ignores_its_input_is_refuted_by_chance_only[noise_rows]",
    "tests/lessnoise/planning/test_plan.py::test_nothing_by_name_beats_the_best[10000]",
    "tests/lessnoise/planning/test_plan.py::test_other_targets[0.05-1e-09]",
    "tests/lessnoise/planning/test_plan.py::test_sampled_steps_are_tight_and_need_less_noise",
    "tests/lessnoise/planning/test_plan.py::test_the_scale_is_proved_and_within_a_thousandth[discrete-gaussian-10000]",
    "tests/lessnoise/planning/test_plan.py::test_the_scale_is_proved_and_within_a_thousandth[l2-10000]",
    "tests/lessnoise/planning/test_plan.py::test_the_scale_is_proved_and_within_a_thousandth[laplace-365]",
    "tests/lessnoise/planning/test_plan.py::test_the_scale_is_proved_and_within_a_thousandth[l2-365]",
    "tests/lessnoise/planning/test_plan.py::test_the_scale_is_proved_and_within_a_thousandth[laplace-10000]",
    "tests/lessnoise/ledger/test_server.py::test_races_and_kills[server-kill-2]",
    "tests/lessnoise/ledger/test_server.py::test_races_and_kills[team-kill-5]",
    "tests/lessnoise/mechanism/counts/test_dawa.py::test_an_attack_on_the_whole_release[dpcomp-True-12000]",
    "tests/lessnoise/mechanism/counts/test_dawa.py::"
    "test_published_noise_tells_neighbours_apart_by_more_than_it_claims[2.0-1.05]",
    "tests/lessnoise/mechanism/counts/test_hierarchy.py::test_gaussian_leaves_have_the_covariance_of_the_fit",
    "tests/lessnoise/mechanism/counts/test_joint_choice.py::test_the_drawn_law_is_that_of_the_enumeration[2.0-2]",
    "tests/lessnoise/mechanism/families/test_shells.py::test_curve_by_sampling[1-0.8]",
    "tests/lessnoise/mechanism/families/test_shells.py::test_curve_by_sampling[4-1.2]",
    "tests/lessnoise/mechanism/least/test_bound.py::test_space_against_staircase[0.5-0.001-0.9]",
    "tests/lessnoise/mechanism/least/test_least.py::test_delta_of_the_sampled_noise[1-1.0-0.01]",
    "tests/lessnoise/mechanism/least/test_longer.py::test_no_mechanism_of_the_catalogue_is_below_the_bound[3-0.02-0.001]",
    "tests/lessnoise/mechanism/test_choice.py::test_no_mechanism_of_the_catalogue_is_better",
    "tests/lessnoise/mechanism/test_extremes.py::test_counts_that_change_together_at_extreme_targets[1e-05-1e-200]",
    "tests/lessnoise/pca/test_regression.py::test_intervals_cover_noise_and_sampling[{'size': 1000}]",
    "tests/lessnoise/strategy/test_gaussian.py::test_the_table_of_many_cells[workload0-220.5]",
    "tests/lessnoise/table/test_table.py::test_no_neighbour_moves_a_measure_beyond_its_set[3-add/remove]",
    "tests/lessnoise/table/test_table.py::test_no_neighbour_moves_a_measure_beyond_its_set[3-replace]",
    "tests/lessnoise_paper/experiments/test_demo.py::test_the_papers_setting_as_target_is_not_listed_twice",
    "tests/lessnoise/engines/test_differential.py::test_spark_gives_the_answers_of_numpy",
    "tests/lessnoise_paper/experiments/test_demo.py::test_numbers_on_the_page_follow_the_result",
    "tests/lessnoise_paper/experiments/test_demo.py::test_same_seed_same_releases_another_seed_others",
    "tests/lessnoise/mechanism/test_extremes.py::"
    "test_every_mechanism_of_the_catalogue_at_extreme_targets[correlated-radial-shape21-10000.0-1e-06]",
    "tests/lessnoise/mechanism/test_extremes.py::"
    "test_every_mechanism_of_the_catalogue_at_extreme_targets[correlated-radial-shape22-1e-05-1e-200]",
    "tests/lessnoise/mechanism/test_extremes.py::"
    "test_the_least_noise_of_extreme_targets_takes_bounded_work[1e-12-1e-200-100]",
    "tests/lessnoise/pca/test_bingham.py::test_gibbs_frames_have_the_exact_law_in_three_dimensions",
    "tests/lessnoise/pca/test_bingham.py::test_one_by_one_each_component_is_a_bingham_vector_in_the_complement",
    "tests/lessnoise/mechanism/least/test_bound.py::test_quantile_bound",
    "tests/lessnoise/mechanism/least/test_bound.py::test_no_valid_mechanism_is_below",
    "tests/lessnoise/mechanism/least/test_longer.py::test_the_factor_is_small_for_tiny_epsilon[2-1e-06-1e-09]",
    "tests/lessnoise/mechanism/least/test_longer.py::test_the_factor_is_small_for_tiny_epsilon[10-1e-06-1e-05]",
    "tests/lessnoise/mechanism/least/test_longer.py::test_proofs_against_longer_shifts_are_gone_through_again",
    "tests/lessnoise/mechanism/measured/test_law.py::test_columns_that_differ_compose_within_a_narrow_bracket",
    "tests/lessnoise/mechanism/counts/test_dawa.py::"
    "test_published_noise_tells_neighbours_apart_by_more_than_it_claims[1.0-1.6]",
    "tests/lessnoise/mechanism/counts/test_joint_choice.py::test_the_drawn_law_is_that_of_the_enumeration[0.8-1]",
    "tests/lessnoise/mechanism/counts/test_joint_choice.py::"
    "test_the_error_is_the_one_that_is_stated_where_rows_are_dense",
    "tests/lessnoise/mechanism/families/test_shells.py::test_curve_by_sampling[2-0.5]",
    "tests/lessnoise/mechanism/families/test_product_noise.py::test_law_and_noise",
    "tests/lessnoise/pca/test_regression.py::"
    "test_intervals_cover_noise_and_sampling[{'size': 3000, 'neighbours': 'replace', 'delta': None}]",
    "tests/lessnoise/table/test_table.py::test_no_neighbour_moves_a_measure_beyond_its_set[1-replace]",
    "tests/lessnoise/audit/test_hostile.py::test_what_ignores_its_input_is_refuted_by_chance_only[numbered_rows]",
    "tests/lessnoise/audit/test_hostile.py::test_what_ignores_its_input_is_refuted_by_chance_only[shown_size]",
    "tests/lessnoise/learn/test_learn.py::test_gaussian_epsilon_is_that_of_opacus[0.5-0.00512-19531]",
    "tests/lessnoise/learn/test_learn.py::test_gaussian_epsilon_is_that_of_dp_accounting[0.5-0.00512-19531]",
    "tests/lessnoise/learn/test_learn.py::"
    "test_gaussian_epsilon_is_that_of_dp_accounting[0.5-0.004266666666666667-7031]",
    "tests/lessnoise_paper/training/test_training.py::test_strong_training_learns",
    "tests/lessnoise/release/test_streamed.py::test_a_large_array_takes_little_memory",
    "tests/lessnoise/mechanism/least/test_least.py::test_processes_may_share_a_cache",
    "tests/lessnoise/pca/test_bingham.py::test_full_frames_are_uniform",
    "tests/lessnoise/pca/test_bingham.py::test_it_turns_with_the_matrix_and_needs_no_scale",
    "tests/lessnoise/audit/test_hostile.py::test_what_ignores_its_input_is_refuted_by_chance_only[shared_noise]",
    "tests/lessnoise/mechanism/least/test_longer.py::test_both_ways_agree_where_both_work",
    "tests/lessnoise/mechanism/test_extremes.py::"
    "test_the_least_noise_of_extreme_targets_takes_bounded_work[100000.0-1e-200-2000]",
    "tests/lessnoise/mechanism/counts/test_hierarchy.py::test_an_attack_proves_part_of_the_privacy_loss_and_not_more",
    "tests/lessnoise/mechanism/measured/test_builder.py::test_a_million_cells_are_no_matrix",
    "tests/lessnoise/learn/test_across.py::test_comparison_has_a_row_for_each_choice_and_knows_where_nothing_is_gained",
    "tests/lessnoise/learn/test_learn.py::test_gaussian_epsilon_is_that_of_opacus[0.5-0.004266666666666667-7031]",
    "tests/lessnoise_paper/training/test_training.py::"
    "test_the_published_noise_trains_as_the_paper_says_and_exact_noise_does_not",
    "tests/lessnoise_paper/experiments/test_components.py::test_the_digits_in_one_call",
    "tests/lessnoise_paper/experiments/test_demo.py::test_page_and_pictures_are_reproducible",
    "tests/lessnoise/noise/test_bodies.py::test_compiled_numpy_and_exact_agree_bit_for_bit[float32-1-cube]",
    "tests/lessnoise/explorer/test_explorer.py::test_exact_calibrations_agree_with_the_library",
}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark slow examples, and skip a page whose comment ``<!-- needs: torch, opacus -->`` names a missing module."""
    long = [item for item in items if item.nodeid in LONG]
    if len(items) > len(long) and not os.environ.get("LESSNOISE_ALL_TESTS"):  # one that is asked for alone is run
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item.nodeid not in LONG]
    for item in items:
        if item.nodeid in SLOW_EXAMPLES:
            item.add_marker(pytest.mark.slow)
        if item.path.suffix == ".md":
            missing = [name for name in needs(item.path.read_text(encoding="utf-8")) if not _importable(name)]
            if missing:
                item.add_marker(pytest.mark.skip(reason=f"needs {', '.join(missing)}"))


@pytest.fixture(autouse=True)
def _a_fresh_folder_for_pages(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The examples of a page run in an empty folder, so that they may write files as a reader would."""
    if request.path.suffix == ".md":
        monkeypatch.chdir(request.getfixturevalue("tmp_path"))


def needs(text: str) -> list[str]:
    """The modules that a page says it needs."""
    comment = re.search(r"<!-- needs: ([\w., ]+) -->", text)
    return [] if comment is None else re.split(r",\s*", comment[1].strip())


def _importable(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # a parent package is missing
        return False
