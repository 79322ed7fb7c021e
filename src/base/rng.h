/* Randomness without state: Philox4x32-10 (Salmon et al., SC'11); seed is the key, (index, what)
 * the counter.
 * The same (seed, what, index) gives the same value on every rank, layout and machine. */
#ifndef BASE_RNG_H
#define BASE_RNG_H
#include "base/types.h"

void rng_philox(uint64_t seed, uint64_t what, uint64_t index, uint32_t out[4]) LOCAL;
uint64_t rng_u64(uint64_t seed, uint64_t what, uint64_t index) LOCAL;
/* Standard normal, Box-Muller in double, without libm's log and cos. */
double rng_normal(uint64_t seed, uint64_t what, uint64_t index) LOCAL;
/* A bijection of 0..n-1 (Feistel network, cycle walking), n >= 1; O(1). */
uint64_t rng_permute(uint64_t seed, uint64_t what, uint64_t n, uint64_t i) LOCAL;
#endif
