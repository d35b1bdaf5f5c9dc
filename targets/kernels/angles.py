"""Polynomial coefficients of sine and cosine on |r| <= pi / 4.

Polynomials in r^2 approximate (sin(r) - r) / r^3 and (cos(r) - 1 + r^2 / 2) / r^4; the coefficient
of the highest power comes first. Source: Cephes, sinf.
"""

SIN = (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
COS = (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
