"""Spin-adapted closed-shell CCSD, written once. The Fock matrix is diagonal but for what the SCF left.

(pq|rs) are integrals in Mulliken order, i..l occupied, a..d virtual. Pairs packed `+-` are
exchange-parity pairs, so the particle-particle ladder V tau costs 1/4 o^2 v^4 multiply-adds. The
residual has 4 1/2 products of o^3 v^3: WD (1), WC (1), N (1/2), WD U (1), WC X (1). The Fock-like
contractions of doubles cost no product: E_ki and E_ac are traces of WC and WD, put on their
diagonals before the second phase. What the singles have from (kc|ad) is a trace of N.

Singles are solved for first, and the doubles see the new ones: they converge in fewer iterations.
"""

_STORED = ("constant vvvv[ac+|bd+] = (ac|bd)", "V[ab+-||cd+-] = vvvv[ac|bd]")
_FORMED = ("constant B[ac+|x] = vectors", "formed V[ab+-|cd+-] = B[ac|x] B[bd|x]")

CCSD = """
input    t[i|a]
input    T[ab+-|ij+-]                                  # t_ij^ab

# Integrals, each kind once, and the forms of them that the iterations need: made before the first one.
constant vvvv[ac+|bd+] = (ac|bd)
constant ovvv[kc|bd+]  = (kc|bd)
constant oovv[ki+|ac+] = (ki|ac)
constant ovov[ia|jb]   = (ia|jb)
constant ooov[ki+|lc]  = (ki|lc)
constant oooo[ki+|lj+] = (ki|lj)
constant f[i|a]        = fock                          # next to nothing, as fo and fw:
constant fo[k|i]       = fock                          # what the SCF left besides the orbital energies
constant fw[a|c]       = fock

V[ab+-||cd+-] = vvvv[ac|bd]                           # symmetric: half of it is stored
K[ab+-|ij+-]  = ovov[ia|jb]
A[kb|cd+-]    = ovvv[kc|bd]
N0[kb|ij+-]   = ooov[ki|jb]
W0[kl+-|ij+-] = oooo[ki|lj]
Kx[ia|jb] = ovov[ib|ja]
L[ia|jb]  = 2 ovov[ia|jb] - ovov[ib|ja]
J[ia|kc]  = oovv[ki|ac]
Vd[ad|kc] = ovvv[kc|ad]
Vj[da|kc] = ovvv[kd|ac]
Od[il|kc] = 2 ooov[li|kc] - ooov[ki|lc]
Oc[il|kc] = ooov[ki|lc]
Oz[ld|ki] = ooov[ki|ld]
Os[ki|lc] = ooov[ki|lc]
fv[ia|]   = f[i|a]
q[l|c]    = 2 ooov[ii|lc] - ooov[li|ic] - f[l|c]

# Energy of the amplitudes that came in; tau_ij^ab = t_ij^ab + t_i^a t_j^b.
tau[ab+-|ij+-] = T[ab|ij] + t[i|a] t[j|b]
e[] = 2 tau[ab|ij] K[ab|ij] - tau[ab|ij] K[ab|ji] + 2 t[i|a] f[i|a]

# Plain forms of the doubles. X is the exchanged t_ij^ba, U = 2 T - X.
U[ia|jb] = 2 T[ab|ij] - T[ba|ij]
X[ia|jb] = T[ba|ij]

# First phase.
R[ab+-|ij+-] = V[ab|cd] tau[cd|ij]
N[kb|ij+-]   = A[kb|cd] tau[cd|ij]
W[kl+-|ij+-] = K[cd|kl] tau[cd|ij]
G[ki|jb]  = t[i|c] ovov[kc|jb]
GD[il|kc] = Od[il|kc] + 2 G[li|kc] - G[ki|lc]
GC[il|kc] = Oc[il|kc] + G[ki|lc]
WD[ia|kc] = 1/2 U[ia|ld] L[ld|kc] - t[l|a] GD[il|kc]
WC[ia|kc] = -1/2 X[ia|ld] Kx[ld|kc] - t[l|a] GC[il|kc]
J1[ia|kc] = t[i|d] Vj[da|kc]
H[ij|kb]  = t[j|c] J[ic|kb]
Z[lj|ki]  = t[j|d] Oz[ld|ki]

# Fock-like intermediates, as traces.
Eo[k|i] = 3/2 WC[ic|kc] - 1/2 WD[ic|kc] - t[i|c] f[k|c] - fo[k|i]
Ev[a|c] = 3/2 WC[ia|ic] - 1/2 WD[ia|ic] + t[l|a] q[l|c] + fw[a|c]

# Singles.
r[i|a] = t[i|c] Ev[a|c] + Eo[k|i] t[k|a] + 2 N[ka|ki] - N[ka|ik]
tv[ia|] = t[i|a]
gv[ia|] = L[ia|kc] tv[kc|] + fv[ia|]
g[k|c] = gv[kc|]
F[i|k] = t[i|c] g[k|c]
rv[ia|] = 2 ovov[ia|kc] tv[kc|] - J[ia|kc] tv[kc|] + U[ia|kc] gv[kc|]
r[i|a] += F[i|k] t[k|a] - Os[ki|lc] U[ka|lc] + rv[ia|] + f[i|a]
solve t[i|a] : r[i|a] / (i - a)

# What the doubles have of the first order in the singles comes by D and M: these are made of the new ones.
D[ia|kc]  = t.new[i|d] Vd[ad|kc]
Ev[a|c] += 2 J1[ia|ic] - D[ia|ic]
WD[ia|kc] += 2 D[ia|kc] - J1[ia|kc] + 2 ovov[ia|kc] - J[ia|kc]
WC[ia|kc] += J1[ia|kc] + J[ia|kc]
WD[ia|ic] += 1/2 Ev[a|c]
WC[ia|ic] -= 1/2 Ev[a|c]
WD[ia|ka] += 1/2 Eo[k|i]
WC[ia|ka] -= 1/2 Eo[k|i]

N[kb|ij] += N0[kb|ij] + G[ki|jb] + H[ij|kb]
W[kl|ij] += W0[kl|ij] + Z[lj|ki] + Z[ki|lj]

# Second phase.
D[ia|jb] += 1/2 WD[ia|kc] U[kc|jb]
Y[ia|jb] = WC[ia|kc] X[kc|jb]
R[ab|ij] += tau[ab|kl] W[kl|ij]
M[ab|ij+-] = t.new[k|a] N[kb|ij]
R[ab|ij] += K[ab|ij] - M[ab|ij] - M[ba|ji] + D[ia|jb] + D[jb|ia]
    - 1/2 Y[ia|jb] - 1/2 Y[jb|ia] - Y[ib|ja] - Y[ja|ib]

solve T[ab|ij] : R[ab|ij] / (i + j - a - b)
"""

CCSD_ON_THE_FLY = CCSD.replace(_STORED[0], _FORMED[0]).replace(_STORED[1], _FORMED[1])
"""The same with V made of vectors, a block when it is needed."""
