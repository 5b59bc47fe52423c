"""Vectors and matrices over the latent dimension in Triton: tuples of blocks, which the compiler unrolls.

A symmetric matrix is its upper triangle, row by row; any other a tuple of all its entries.
"""

import triton
import triton.language as tl

__all__ = ["concave_part", "dot", "full", "get", "plus_entry", "put", "solved", "times", "with_entry", "zeros"]


@triton.jit
def get(p, n, COUNT: tl.constexpr):
    """COUNT numbers that lie n apart."""
    out = (tl.load(p),)
    for k in tl.static_range(1, COUNT):
        out = out + (tl.load(p + k * n),)
    return out


@triton.jit
def put(p, n, values, who):
    """Put numbers back to where they lie, for some of the slots."""
    for k in tl.static_range(len(values)):
        tl.store(p + k * n, values[k], mask=who)


@triton.jit
def dot(a, b):
    """a'b."""
    total = a[0] * b[0]
    for k in tl.static_range(1, len(a)):
        total += a[k] * b[k]
    return total


@triton.jit
def zeros(like, COUNT: tl.constexpr):
    """A vector of zeros."""
    out = (like * 0.0,)
    for _ in tl.static_range(1, COUNT):
        out = out + (like * 0.0,)
    return out


@triton.jit
def times(A, b):
    """A b, of a full matrix row by row."""
    D: tl.constexpr = len(b)
    out = (_row_times(A, b, 0),)
    for k in tl.static_range(1, D):
        out = out + (_row_times(A, b, k),)
    return out


@triton.jit
def _row_times(A, b, k: tl.constexpr):
    D: tl.constexpr = len(b)
    total = A[k * D] * b[0]
    for l in tl.static_range(1, D):
        total += A[k * D + l] * b[l]
    return total


@triton.jit
def full(A, D: tl.constexpr):
    """The whole matrix of a triangle."""
    out = (A[0],)
    for e in tl.static_range(1, D * D):
        out = out + (_entry(A, e // D, e % D, D),)
    return out


@triton.jit
def _entry(A, k: tl.constexpr, l: tl.constexpr, D: tl.constexpr):
    first: tl.constexpr = k if k < l else l
    second: tl.constexpr = l if k < l else k
    return A[first * D - first * (first - 1) // 2 + second - first]


@triton.jit
def plus_entry(A, k: tl.constexpr, l: tl.constexpr, D: tl.constexpr, value):
    """The triangle with something added to entry k, l, where k <= l."""
    e: tl.constexpr = k * D - k * (k - 1) // 2 + l - k
    return with_entry(A, e, A[e] + value)


@triton.jit
def with_entry(A, at: tl.constexpr, value):
    """The tuple with one entry replaced."""
    out = (value if at == 0 else A[0],)
    for e in tl.static_range(1, len(A)):
        out = out + (value if at == e else A[e],)
    return out


@triton.jit
def concave_part(curvature, D: tl.constexpr):
    """N >= 0: minus the curvature with its positive eigenvalues cut off, by Jacobi's rotations."""
    A = full(curvature, D)
    V = (curvature[0] * 0.0 + 1.0,)
    B = (-A[0],)
    for e in tl.static_range(1, D * D):
        V = V + (curvature[0] * 0.0 + (1.0 if e // D == e % D else 0.0),)
        B = B + (-A[e],)
    for _ in range(6):
        for p in tl.static_range(D):
            for q in tl.static_range(p + 1, D):
                off = B[p * D + q]
                turn = off != 0.0
                ratio = (B[q * D + q] - B[p * D + p]) / (2.0 * tl.where(turn, off, 1.0))
                t = 1.0 / (tl.abs(ratio) + tl.sqrt(ratio * ratio + 1.0))
                t = tl.where(turn, tl.where(ratio < 0, -t, t), 0.0)
                c = 1.0 / tl.sqrt(t * t + 1.0)
                s = t * c
                for k in tl.static_range(D):
                    a, b = B[k * D + p], B[k * D + q]
                    B = with_entry(with_entry(B, k * D + p, c * a - s * b), k * D + q, s * a + c * b)
                    a, b = V[k * D + p], V[k * D + q]
                    V = with_entry(with_entry(V, k * D + p, c * a - s * b), k * D + q, s * a + c * b)
                for k in tl.static_range(D):
                    a, b = B[p * D + k], B[q * D + k]
                    B = with_entry(with_entry(B, p * D + k, c * a - s * b), q * D + k, s * a + c * b)
    out = (_recombined(B, V, 0, 0, D),)
    for e in tl.static_range(1, D * D):
        out = out + (_recombined(B, V, e // D, e % D, D),)
    return out


@triton.jit
def _recombined(B, V, k: tl.constexpr, l: tl.constexpr, D: tl.constexpr):
    total = V[k * D] * tl.maximum(B[0], 0.0) * V[l * D]
    for e in tl.static_range(1, D):
        total += V[k * D + e] * tl.maximum(B[e * D + e], 0.0) * V[l * D + e]
    return total


@triton.jit
def solved(M, b, c):
    """M^-1 b and M^-1 c, with partial pivoting in each row's own system."""
    D: tl.constexpr = len(b)
    for k in tl.static_range(D):
        for l in tl.static_range(k + 1, D):
            larger = tl.abs(M[l * D + k]) > tl.abs(M[k * D + k])
            for j in tl.static_range(k, D):
                low, high = M[k * D + j], M[l * D + j]
                M = with_entry(M, k * D + j, tl.where(larger, high, low))
                M = with_entry(M, l * D + j, tl.where(larger, low, high))
            low, high = b[k], b[l]
            b = with_entry(with_entry(b, k, tl.where(larger, high, low)), l, tl.where(larger, low, high))
            low, high = c[k], c[l]
            c = with_entry(with_entry(c, k, tl.where(larger, high, low)), l, tl.where(larger, low, high))
        for l in tl.static_range(k + 1, D):
            share = M[l * D + k] / M[k * D + k]
            for j in tl.static_range(k + 1, D):
                M = with_entry(M, l * D + j, M[l * D + j] - share * M[k * D + j])
            b = with_entry(b, l, b[l] - share * b[k])
            c = with_entry(c, l, c[l] - share * c[k])
    for k in tl.static_range(D - 1, -1, -1):
        for j in tl.static_range(k + 1, D):
            b = with_entry(b, k, b[k] - M[k * D + j] * b[j])
            c = with_entry(c, k, c[k] - M[k * D + j] * c[j])
        b = with_entry(b, k, b[k] / M[k * D + k])
        c = with_entry(c, k, c[k] / M[k * D + k])
    return b, c
