"""Linear and integer programs: SciPy, which brings another copy of the solver, is the oracle."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, linprog, milp

from trainyard.errors import SolverError
from trainyard.solve.program import NO_ROWS, Effort, Program, Rows, Variables, maximise

SIZES = st.tuples(st.integers(1, 8), st.integers(0, 5), st.integers(0, 2))


def rows_of(matrix, limit):
    row, column = np.nonzero(matrix)
    return Rows(row, column, matrix[row, column], limit)


def drawn(seed, variables, above, equal):
    """A program with small whole numbers: many ties, and about half of the equations have no answer."""
    rng = np.random.default_rng(seed)
    a_ub = rng.integers(-2, 6, (above, variables)) * (rng.random((above, variables)) < 0.7)
    a_eq = rng.integers(0, 4, (equal, variables))
    limits = rng.integers(-1, 12, above), rng.integers(0, 6, equal)
    upper = np.where(rng.random(variables) < 0.3, np.inf, rng.integers(0, 5, variables))
    return rng.integers(-3, 8, variables).astype(float), a_ub, limits[0], a_eq, limits[1], upper


def solved(program, integer=False):
    gain, a_ub, b_ub, a_eq, b_eq, upper = program
    return maximise(gain, rows_of(a_ub, b_ub), rows_of(a_eq, b_eq), upper, integer)


def knapsack(seed, size):
    rng = np.random.default_rng(seed)
    weights = rng.uniform(1, 10, (3, size))
    return rng.uniform(1, 10, size), rows_of(weights, weights.sum(axis=1) / 3), NO_ROWS, np.ones(size)


@settings(max_examples=150, deadline=None)
@given(SIZES, st.integers(0, 2**32))
def test_a_linear_program_is_as_good_as_the_oracle_says(sizes, seed):
    program = gain, a_ub, b_ub, a_eq, b_eq, upper = drawn(seed, *sizes)
    x = solved(program)
    oracle = linprog(-gain, a_ub, b_ub, a_eq, b_eq, np.column_stack([np.zeros(gain.size), upper]))
    assert (x is None) == (oracle.status in (2, 3, 4))
    if x is not None:
        assert gain @ x == pytest.approx(-oracle.fun, rel=1e-9, abs=1e-9)
        assert (a_ub @ x <= b_ub + 1e-6).all()
        assert a_eq @ x == pytest.approx(b_eq, abs=1e-6)
        assert (x >= -1e-9).all()
        assert (x <= upper + 1e-9).all()


@settings(max_examples=100, deadline=None)
@given(SIZES, st.integers(0, 2**32))
def test_an_integer_program_is_as_good_as_the_oracle_says(sizes, seed):
    gain, a_ub, b_ub, a_eq, b_eq, upper = drawn(seed, *sizes)
    upper = np.minimum(upper, 6.0)
    x = solved((gain, a_ub, b_ub, a_eq, b_eq, upper), integer=True)
    rows = [LinearConstraint(a_ub, ub=b_ub)] if b_ub.size else []
    rows += [LinearConstraint(a_eq, b_eq, b_eq)] if b_eq.size else []
    bounds = np.stack([np.zeros(gain.size), upper])
    oracle = milp(-gain, integrality=np.ones(gain.size), bounds=bounds, constraints=rows)
    assert (x is None) == (oracle.x is None)
    if x is not None:
        assert x == pytest.approx(x.round(), abs=1e-6)
        assert gain @ x == pytest.approx(-oracle.fun, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("integer", [False, True])
def test_what_cannot_be_has_no_answer(integer):
    two = Rows(np.array([0]), np.array([0]), np.ones(1), np.array([2.0]))
    assert maximise(np.ones(1), NO_ROWS, two, np.ones(1), integer) is None


@pytest.mark.parametrize("integer", [False, True])
def test_what_has_no_end_has_no_answer(integer):
    assert maximise(np.ones(1), NO_ROWS, NO_ROWS, np.full(1, np.inf), integer) is None


@pytest.mark.parametrize(("limit", "possible"), [(0.0, True), (-1.0, False)])
def test_without_variables_only_the_limits_count(limit, possible):
    none = np.zeros(0)
    x = maximise(none, rows_of(np.zeros((1, 0)), np.array([limit])), NO_ROWS, none)
    assert (x is not None and x.size == 0) == possible


def test_without_rows_everything_is_taken():
    assert maximise(np.array([1.0, -1.0]), NO_ROWS, NO_ROWS, np.array([3.0, 3.0])).tolist() == [3.0, 0.0]


def test_entries_of_one_place_add_up():
    twice = Rows(np.zeros(2, np.int64), np.zeros(2, np.int64), np.array([1.0, 2.0]), np.array([6.0]))
    assert maximise(np.ones(1), twice, NO_ROWS, np.full(1, 9.0)) == pytest.approx([2.0])


def test_a_program_with_nonsense_is_refused():
    nan = Rows(np.array([0]), np.array([0]), np.array([np.inf]), np.ones(1))
    with pytest.raises(SolverError, match="refuses the program"):
        maximise(np.ones(1), nan, NO_ROWS, np.ones(1))


def test_a_search_that_is_cut_short_gives_what_it_has():
    gain, rows, none, upper = knapsack(3, 60)
    whole = gain @ maximise(gain, rows, none, upper, integer=True)
    short = gain @ maximise(gain, rows, none, upper, integer=True, effort=Effort(nodes=1))
    assert 0.9 * whole <= short <= whole


# -- programs that grow -------------------------------------------------------------------------------------


def dense(cost, matrix):
    """All entries of a matrix as columns."""
    height, width = matrix.shape
    row = np.tile(np.arange(height), width)
    start = np.arange(width) * height
    return Variables(cost, np.full(width, np.inf), start, row, matrix.T.ravel().astype(float))


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 5), st.integers(2, 6), st.integers(0, 2**32))
def test_starting_from_the_last_answer_is_as_good_as_starting_anew(height, parts, seed):
    rng = np.random.default_rng(seed)
    least, most = np.ones(height), np.full(height, np.inf)
    pieces = [(rng.uniform(1, 9, 4), rng.integers(0, 4, (height, 4))) for _ in range(parts)]
    pieces[0][1][0] = 1
    pieces[0][1][:, 0] = 1  # so that there is an answer from the beginning
    warm = Program(least, most)
    for upto, piece in enumerate(pieces, 1):
        warm.add(dense(*piece))
        cold = Program(least, most)
        cost = np.concatenate([each for each, _ in pieces[:upto]])
        matrix = np.hstack([each for _, each in pieces[:upto]])
        cold.add(dense(cost, matrix))
        best, anew = warm.best(), cold.best()
        assert best.cost == pytest.approx(anew.cost, rel=1e-9)
        assert cost @ best.x == pytest.approx(best.cost, rel=1e-9)
        assert best.duals @ least == pytest.approx(best.cost, rel=1e-9)  # strong duality: prices are right
        assert (best.duals @ matrix <= cost + 1e-7).all()


def test_a_whole_answer_in_between_changes_no_later_one():
    program, matrix = Program(np.full(2, 3.0), np.full(2, np.inf)), np.array([[2, 1, 0], [0, 1, 2]])
    program.add(dense(np.array([2.0, 1.9, 2.0]), matrix))
    before = program.best()
    whole = program.best_whole(Effort())
    assert whole.tolist() == [0, 3, 0]
    program.add(dense(np.array([1.0]), np.array([[1], [0]])))
    assert program.best().cost <= before.cost
    assert program.best().x.size == 4


# -- manners ------------------------------------------------------------------------------------------------


def test_nothing_is_printed(capfd):
    for seed in range(5):
        maximise(*knapsack(seed, 40), integer=True)
        maximise(*knapsack(seed, 40))
    assert capfd.readouterr() == ("", "")


def test_what_others_print_meanwhile_is_not_lost(capfd):
    solved_one, lines = threading.Event(), []

    def chat():
        while not solved_one.is_set() or not lines:
            lines.append(f"line {len(lines)}")
            print(lines[-1], flush=True)

    other = threading.Thread(target=chat)
    other.start()
    for seed in range(5):
        maximise(*knapsack(seed, 40), integer=True)
    solved_one.set()
    other.join()
    assert capfd.readouterr().out.splitlines() == lines


def test_threads_do_not_disturb_each_other():
    seeds = list(range(12))

    def answer(seed):
        return maximise(*knapsack(seed, 30), integer=bool(seed % 2)).tolist()

    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(answer, seeds))
    assert together == [answer(seed) for seed in seeds]
