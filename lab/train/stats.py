"""Means with intervals, and least squares with its errors. This file imports no PyTorch."""
import math

# The 97.5 % quantiles of Student's t for 1 to 9 degrees of freedom.
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
MOST = len(STUDENT) + 1  # values that an interval is given for


def interval(values):
    """The mean of independent values, and half the width of its 95 % interval by Student's t: None for a single value."""
    n = len(values)
    if not 1 <= n <= MOST:
        raise ValueError(f"stats: an interval of {n} values; 1 to {MOST} are allowed")
    mean = sum(values) / n
    if n == 1:
        return mean, None
    deviation = math.sqrt(sum((x - mean) ** 2 for x in values) / (n - 1))
    return mean, STUDENT[n - 2] * deviation / math.sqrt(n)


def solve(m, y):
    """x of m x = y, by elimination with pivots."""
    rows = [list(r) + [v] for r, v in zip(m, y)]
    n = len(rows)
    for i in range(n):
        pivot = max(range(i, n), key=lambda r: abs(rows[r][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        if abs(rows[i][i]) < 1e-12:
            raise ValueError("stats: the points do not determine the fit")
        for r in range(n):
            if r != i:
                f = rows[r][i] / rows[i][i]
                rows[r] = [a - f * b for a, b in zip(rows[r], rows[i])]
    return [rows[i][n] / rows[i][i] for i in range(n)]


def least_squares(xs, ys):
    """The slopes and, last, the constant that fit ys best as a linear function of the rows xs."""
    middle = [sum(column) / len(xs) for column in zip(*xs)]  # taken off for the sake of precision
    mean = sum(ys) / len(ys)
    rows = [[x - m for x, m in zip(row, middle)] for row in xs]
    squares = [[sum(r[i] * r[j] for r in rows) for j in range(len(middle))] for i in range(len(middle))]
    slopes = solve(squares, [sum(r[i] * (y - mean) for r, y in zip(rows, ys)) for i in range(len(middle))])
    return [*slopes, mean - sum(s * m for s, m in zip(slopes, middle))]


def at(fit, row):
    return sum(s * x for s, x in zip(fit, row)) + fit[-1]


def root(residuals):
    return math.sqrt(sum(r * r for r in residuals) / len(residuals))


def fitted(xs, ys):
    """A fit of least squares with its errors: the root mean square of what it misses, the same of points left out one at a time and foretold by
    the others (None where too few are left to fit), the largest miss, and R^2."""
    fit = least_squares(xs, ys)
    misses, mean = [y - at(fit, x) for x, y in zip(xs, ys)], sum(ys) / len(ys)
    left = None
    if len(xs) > len(fit):
        left = root([y - at(least_squares(xs[:i] + xs[i + 1:], ys[:i] + ys[i + 1:]), x) for i, (x, y) in enumerate(zip(xs, ys))])
    whole = sum((y - mean) ** 2 for y in ys)
    return dict(fit=fit, rmse=root(misses), left_out=left, worst=max(abs(m) for m in misses),
                r2=1 - sum(m * m for m in misses) / whole if whole else None)
