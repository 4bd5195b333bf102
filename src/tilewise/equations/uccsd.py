"""CCSD over spin orbitals, written once: for UHF, ROHF and closed shells.

<pq||rs> = (pr|qs) - (ps|qr), i..l occupied, a..d virtual spin orbitals. Sums are unrestricted, and pairs
packed `-` are orthonormal, so that coefficients stay those of unrestricted sums. Sectors of pairs are those
of two alpha, of mixed and of two beta orbitals: with o and v of each spin the ladder V tau costs
1 1/4 o^2 v^4 multiply-adds. There are three products of o^3 v^3 kind: Tr Kr, W Tr (10 each) and A tau
(2 1/2). The Fock-like contractions of doubles cost none: Eo and Ev are traces of W. Off its diagonal the Fock
matrix is small for UHF, and not for ROHF. Singles are solved for first, and the doubles see the new ones.
"""

_STORED = (
    "constant V[ab-||cd-] = (ac|bd) - (ad|bc)         # <ab||cd>, symmetric: half of it is stored",
    "R[ab-|ij-]  = 1/2 V[ab|cd] tau[cd|ij]",
)
_FORMED = (
    "constant B2[ac+|x] = vectors\nformed V[ab-|cd-] = B2[ac|x] B2[bd|x]",
    "R[ab-|ij-]  = V[ab|cd] tau[cd|ij]",
)

UCCSD = """
input    t[i|a]
input    T[ab-|ij-]                              # t_ij^ab

constant V[ab-||cd-] = (ac|bd) - (ad|bc)         # <ab||cd>, symmetric: half of it is stored
constant A[kb|cd-]   = (kc|bd) - (kd|bc)         # <kb||cd>
constant K[ab-|ij-]  = (ai|bj) - (aj|bi)         # <ab||ij>
constant J[ia|kc]    = (kc|ai) - (ki|ac)         # <ka||ci>
constant N0[kb|ij-]  = (ki|bj) - (kj|bi)         # <kb||ij>
constant W0[kl-|ij-] = (ki|lj) - (kj|li)         # <kl||ij>
constant f[i|a]      = fock
constant fo[k|i]     = fock
constant fw[a|c]     = fock

Kr[ia|kc]  = K[ac|ik]
Kd[dl|kc]  = K[cd|kl]
Ad[da|kc]  = A[ka|cd]
Jc[cj|kb]  = J[jb|kc]
Oc[il|kc]  = - N0[ic|kl]                         # <kl||ci>
Oz[di|kl-] = N0[id|kl]                           # <kl||id>
q[l|c]     = - N0[ic|li] - f[l|c]
fv[ia|]    = f[i|a]

# Energy of the amplitudes that came in.
tau[ab-|ij-] = T[ab|ij] + P(i/j) t[i|a] t[j|b]
e[] = 1/4 tau[ab|ij] K[ab|ij] + t[i|a] f[i|a]

Tr[ia|jb] = T[ab|ij]

# First phase.
R[ab-|ij-]  = 1/2 V[ab|cd] tau[cd|ij]
N[kb|ij-]   = 1/2 A[kb|cd] tau[cd|ij]
W4[kl-|ij-] = 1/2 K[cd|kl] tau[cd|ij]
G[il|kc]  = Oc[il|kc] + t[i|d] Kd[dl|kc]
W[ia|kc]  = 1/2 Tr[ia|ld] Kr[ld|kc] - t[l|a] G[il|kc]
H[ij|kb]  = t[i|c] Jc[cj|kb]
Z[ji|kl-] = t[j|d] Oz[di|kl]

# Fock-like intermediates, as traces. What the singles have from <ka||cd> is a trace of N.
Eo[k|i] = W[ic|kc] + t[i|c] f[k|c] + fo[k|i]
Ev[a|c] = fw[a|c] - W[ia|ic] + t[l|a] q[l|c]

# Singles.
r[i|a]  = t[i|c] Ev[a|c] - Eo[k|i] t[k|a] + N[ka|ki]
tv[ia|] = t[i|a]
gv[ia|] = Kr[ia|kc] tv[kc|] + fv[ia|]
g[k|c]  = gv[kc|]
F[i|k]  = t[i|c] g[k|c]
rv[ia|] = J[ia|kc] tv[kc|] + Tr[ia|kc] gv[kc|]
r[i|a] += F[i|k] t[k|a] + rv[ia|] - 1/2 Oc[ik|lc] Tr[ka|lc] + f[i|a]
solve t[i|a] : r[i|a] / (i - a)

# What the doubles have of the first order in the singles comes by B and M: these are made of the new ones.
B[ji|ab-] = t.new[i|d] A[jd|ab]
W[ia|kc] += t[i|d] Ad[da|kc]
Ew[a|c] = fw[a|c] - W[ia|ic] + t[l|a] q[l|c]
W[ia|kc] += J[ia|kc]
W[ia|ic] += 1/2 Ew[a|c]
W[ia|ka] -= 1/2 Eo[k|i]

N[kb|ij]  += N0[kb|ij] + P(i/j) H[ij|kb]
W4[kl|ij] += W0[kl|ij] + P(i/j) Z[ji|kl]

# Second phase.
X[ia|jb] = W[ia|kc] Tr[kc|jb]
R[ab|ij] += 1/2 tau[ab|kl] W4[kl|ij]
M[ab|ij-] = t.new[k|a] N[kb|ij]
R[ab|ij] += K[ab|ij] + P(i/j) P(a/b) X[ia|jb] - P(a/b) M[ab|ij] - P(i/j) B[ji|ab]

solve T[ab|ij] : R[ab|ij] / (i + j - a - b)
"""

UCCSD_ON_THE_FLY = UCCSD.replace(_STORED[0], _FORMED[0]).replace(_STORED[1], _FORMED[1])
"""The same with (ac|bd) made of vectors, a block when it is needed; tau antisymmetrizes it."""
