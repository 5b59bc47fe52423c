/* Vectors of REAL, the sine and cosine of one, and phases; LATENT is the latent dimension, where there is one. */

#ifndef VECTORS_H
#define VECTORS_H

#ifdef __AVX512F__
#include <immintrin.h>
#endif
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BYTES 64
#define SHEAF 8 /* phases that are summed side by side */
#define LANES ((int)(BYTES / sizeof(REAL)))
#define PAIRS (LATENT * (LATENT + 1) / 2)

typedef REAL vec __attribute__((vector_size(BYTES)));
#ifdef SINGLE
typedef int32_t whole;
#define EPSILON 1.2e-7f
#else
typedef int64_t whole;
#define EPSILON 2.3e-16
#endif
typedef whole mask __attribute__((vector_size(BYTES)));
typedef float rough __attribute__((vector_size(BYTES))); /* singles, whatever REAL is */
typedef int32_t rough_mask __attribute__((vector_size(BYTES)));
#define ROUGH_LANES ((int)(BYTES / sizeof(float)))

static inline vec all(REAL a) { return a - (vec){}; }
static inline vec pick(mask take, vec a, vec b) { return (vec)((take & (mask)a) | (~take & (mask)b)); }
static inline vec least(vec a, vec b) { return pick(a < b, a, b); }
static inline vec most(vec a, vec b) { return pick(a > b, a, b); }
static inline vec clip(vec a, vec low, vec high) { return least(most(a, low), high); }
static inline vec size(vec a) { return most(a, -a); }
static inline mask nobody(void) { return (mask){}; }

/* A bit for each lane. */
static inline uint32_t which(mask m) {
#ifdef __AVX512F__
    return sizeof(whole) == 4 ? _mm512_test_epi32_mask((__m512i)m, (__m512i)m)
                              : _mm512_test_epi64_mask((__m512i)m, (__m512i)m);
#else
    uint32_t bits = 0; /* the compiler takes the lanes one by one */
    for (int l = 0; l < LANES; l++) bits |= (uint32_t)(m[l] & 1) << l;
    return bits;
#endif
}

static inline int any(mask m) {
#ifdef __AVX512F__
    return which(m) != 0;
#else
    whole sum = 0;
    for (int l = 0; l < LANES; l++) sum |= m[l];
    return sum != 0;
#endif
}

static inline vec root(vec a) {
    vec r = a;
    for (int l = 0; l < LANES; l++) r[l] = (REAL)sqrt((double)a[l]);
    return r;
}

/* Sine and cosine, after Cody and Waite: the multiple of pi/2 that is nearest is taken off in three parts, and the
   polynomials are those of Cephes. Good to an ulp or two for arguments up to some ten thousand. */
static inline void sine_cosine(vec a, vec *sine, vec *cosine) {
#ifdef SINGLE
    const REAL round = 12582912.0f; /* 1.5 * 2^23: adding it leaves the whole part in the last bits */
    vec shifted = a * all(0.636619772367581343f) + all(round), q = shifted - all(round);
    vec r = a - q * all(1.5703125f);
    r -= q * all(4.837512969970703125e-4f);
    r -= q * all(7.549789948768648e-8f);
    vec z = r * r;
    vec s = r + r * z * (all(-1.6666654611e-1f) + z * (all(8.3321608736e-3f) + z * all(-1.9515295891e-4f)));
    vec c = all(1.0f) - all(0.5f) * z +
            z * z * (all(4.166664568298827e-2f) + z * (all(-1.388731625493765e-3f) + z * all(2.443315711809948e-5f)));
#else
    const REAL round = 6755399441055744.0; /* 1.5 * 2^52 */
    vec shifted = a * all(0.63661977236758134308) + all(round), q = shifted - all(round);
    vec r = a - q * all(1.57079625129699707031);
    r -= q * all(7.54978941586159635335e-8);
    r -= q * all(5.39030285815811905290e-15);
    vec z = r * r;
    vec s = all(1.58962301576546568060e-10);
    s = s * z + all(-2.50507477628578072866e-8);
    s = s * z + all(2.75573136213857245213e-6);
    s = s * z + all(-1.98412698295895385996e-4);
    s = s * z + all(8.33333333332211858878e-3);
    s = s * z + all(-1.66666666666666307295e-1);
    s = r + r * z * s;
    vec c = all(-1.13585365213876817300e-11);
    c = c * z + all(2.08757008419747316778e-9);
    c = c * z + all(-2.75573141792967388112e-7);
    c = c * z + all(2.48015872888517045348e-5);
    c = c * z + all(-1.38888888888730564116e-3);
    c = c * z + all(4.16666666666665929218e-2);
    c = all(1.0) - all(0.5) * z + z * z * c;
#endif
    mask quadrant = (mask)shifted;
    mask odd = (quadrant & 1) != 0;
    mask sign_bit = (mask)all((REAL)-0.0);
    vec sines = pick(odd, c, s), cosines = pick(odd, s, c);
    *sine = (vec)((mask)sines ^ (((quadrant & 2) != 0) & sign_bit));
    *cosine = (vec)((mask)cosines ^ ((((quadrant + 1) & 2) != 0) & sign_bit));
}

static inline rough rough_all(float a) { return a - (rough){}; }

/* The cosine alone: a multiple of pi is taken off in two parts, and the polynomial is the one that is nearest to the
   cosine up to pi/2, off by 5e-8 at most. Good to an ulp or two of 1 for arguments up to some thousand. */
static inline rough rough_cosine(rough a) {
    const rough round = rough_all(12582912.0f);
    rough shifted = a * rough_all(0.318309886183790672f) + round, q = shifted - round;
    rough r = a - q * rough_all(3.140625f);
    r -= q * rough_all(9.67653589793e-4f);
    rough z = r * r, c = rough_all(2.319282673664269e-05f);
    c = c * z + rough_all(-1.3855862523834486e-3f);
    c = c * z + rough_all(4.166398153335355e-2f);
    c = c * z + rough_all(-0.49999932025010635f);
    c = c * z + rough_all(1.0f);
    return (rough)((rough_mask)c ^ ((((rough_mask)shifted & 1) != 0) & (rough_mask)rough_all(-0.0f)));
}

#ifdef SINGLE
static inline vec cosine_of(vec a) { return rough_cosine(a); }
#else
static inline vec cosine_of(vec a) {
    const REAL round = 6755399441055744.0;
    vec shifted = a * all(0.31830988618379067154) + all(round), q = shifted - all(round);
    vec r = a - q * all(3.14159250259399414062);
    r -= q * all(1.50995788317231927067e-7);
    r -= q * all(1.07806057163162381058e-14);
    vec z = r * r, c = all(4.11031762331216486e-19);
    c = c * z + all(-1.56192069685862265e-16);
    c = c * z + all(4.77947733238738530e-14);
    c = c * z + all(-1.14707455977297247e-11);
    c = c * z + all(2.08767569878680990e-9);
    c = c * z + all(-2.75573192239858907e-7);
    c = c * z + all(2.48015873015873016e-5);
    c = c * z + all(-1.38888888888888889e-3);
    c = c * z + all(4.16666666666666667e-2);
    c = c * z + all(-0.5);
    c = c * z + all(1.0);
    return (vec)((mask)c ^ ((((mask)shifted & 1) != 0) & (mask)all(-0.0)));
}
#endif

/* Add Zx to the phases of one sheaf; z is columns x SHEAF. */
static inline void add_to_sheaf(const REAL *z, const vec *x, int64_t columns, vec phase[SHEAF]) {
    vec sum[SHEAF]; /* of one's own: the compiler keeps these in registers */
    for (int s = 0; s < SHEAF; s++) sum[s] = phase[s];
    for (int64_t j = 0; j < columns; j++, z += SHEAF) {
        vec value = x[j];
        for (int s = 0; s < SHEAF; s++) sum[s] += all(z[s]) * value;
    }
    for (int s = 0; s < SHEAF; s++) phase[s] = sum[s];
}

#endif
