/* CRC-32C (Castagnoli), as record batches have it: by the CPU's instruction where there is one, else by table.
 *
 * The instruction takes three cycles but one can start in each, so long data are read as three streams side by side:
 * the checksum of A|B is (that of A, moved over as many zero bytes as B has) xor (that of B). Moving over one whole
 * block is linear, hence four look-ups.
 *
 * Where the CPU multiplies polynomials in vectors (VPCLMULQDQ), long data are folded: 256 bytes stand in four registers,
 * and are multiplied by the power of x that moves them over the next 256, which are then added. What is left in the end
 * has the checksum of all that went in. In the bit order of this checksum 128 bits are moved by D bits when their first
 * half is multiplied by x^(D+31) and their second by x^(D-33).
 *
 * crc32c_prepare() fills the tables and must run before the first crc32c(); each module does so when it is imported. */
#ifndef BARNABAS_CRC32C_H
#define BARNABAS_CRC32C_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define CRC32C_POLYNOMIAL 0x82F63B78u
#define CRC32C_BLOCK 1024

static uint32_t crc32c_bytes[8][256];
static uint32_t crc32c_over_block[4][256];
static int crc32c_by_hardware = 0;
static int crc32c_by_vectors = 0;

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#include <immintrin.h>
#define CRC32C_FOLDING __attribute__((target("sse4.2,pclmul,avx512f,avx512vl,vpclmulqdq")))
#define CRC32C_FOLDING_SUPPORTED()                                                                                     \
    (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("vpclmulqdq"))
#define CRC32C_HARDWARE __attribute__((target("sse4.2")))
#define CRC32C_STEP8(crc, word) ((uint32_t)__builtin_ia32_crc32di((crc), (word)))
#define CRC32C_STEP1(crc, byte) __builtin_ia32_crc32qi((crc), (byte))
#define CRC32C_SUPPORTED() __builtin_cpu_supports("sse4.2")
#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32) && defined(__LITTLE_ENDIAN__)
#include <arm_acle.h>
#define CRC32C_HARDWARE
#define CRC32C_STEP8(crc, word) __crc32cd((crc), (word))
#define CRC32C_STEP1(crc, byte) __crc32cb((crc), (byte))
#define CRC32C_SUPPORTED() 1
#endif

static uint32_t crc32c_by_table(uint32_t crc, const uint8_t *data, size_t length) {
    for (; length >= 8; data += 8, length -= 8) {
        crc ^= data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 | (uint32_t)data[3] << 24;
        crc = crc32c_bytes[7][crc & 255] ^ crc32c_bytes[6][crc >> 8 & 255] ^ crc32c_bytes[5][crc >> 16 & 255] ^
              crc32c_bytes[4][crc >> 24] ^ crc32c_bytes[3][data[4]] ^ crc32c_bytes[2][data[5]] ^
              crc32c_bytes[1][data[6]] ^ crc32c_bytes[0][data[7]];
    }
    for (; length; data++, length--)
        crc = crc >> 8 ^ crc32c_bytes[0][(crc ^ *data) & 255];
    return crc;
}

#ifdef CRC32C_HARDWARE
static inline uint64_t crc32c_word(const uint8_t *data) {
    uint64_t word;
    memcpy(&word, data, 8);
    return word;
}

static inline uint32_t crc32c_moved(uint32_t crc) {
    return crc32c_over_block[0][crc & 255] ^ crc32c_over_block[1][crc >> 8 & 255] ^
           crc32c_over_block[2][crc >> 16 & 255] ^ crc32c_over_block[3][crc >> 24];
}

CRC32C_HARDWARE static uint32_t crc32c_by_cpu(uint32_t crc, const uint8_t *data, size_t length) {
    for (; length >= 3 * CRC32C_BLOCK; data += 3 * CRC32C_BLOCK, length -= 3 * CRC32C_BLOCK) {
        uint32_t second = 0, third = 0;
        for (size_t i = 0; i < CRC32C_BLOCK; i += 8) {
            crc = CRC32C_STEP8(crc, crc32c_word(data + i));
            second = CRC32C_STEP8(second, crc32c_word(data + CRC32C_BLOCK + i));
            third = CRC32C_STEP8(third, crc32c_word(data + 2 * CRC32C_BLOCK + i));
        }
        crc = crc32c_moved(crc32c_moved(crc) ^ second) ^ third;
    }
    for (; length >= 8; data += 8, length -= 8)
        crc = CRC32C_STEP8(crc, crc32c_word(data));
    for (; length; data++, length--)
        crc = CRC32C_STEP1(crc, *data);
    return crc;
}
#endif

#ifdef CRC32C_FOLDING
#define CRC32C_FOLDED_BYTES 256
/* x^(D+31) and x^(D-33) for D = 2048, 512 and 128 bits: over four registers, over one, over a quarter of one. */
static uint64_t crc32c_powers[3][2];

#define CRC32C_FOLD(value, powers, next)                                                                               \
    _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(value, powers, 0x00),                                           \
                              _mm512_clmulepi64_epi128(value, powers, 0x11), next, 0x96 /* xor of all three */)
#define CRC32C_LOAD(data, place) _mm512_loadu_si512((const void *)((data) + 64 * (place)))

CRC32C_FOLDING static inline __m128i crc32c_fold_quarter(__m128i value, __m128i next) {
    __m128i powers = _mm_loadu_si128((const __m128i *)crc32c_powers[2]);
    __m128i moved = _mm_xor_si128(_mm_clmulepi64_si128(value, powers, 0x00), _mm_clmulepi64_si128(value, powers, 0x11));
    return _mm_xor_si128(moved, next);
}

CRC32C_FOLDING static uint32_t crc32c_by_folding(uint32_t crc, const uint8_t *data, size_t length) {
    __m512i powers = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)crc32c_powers[0]));
    __m512i a = CRC32C_LOAD(data, 0), b = CRC32C_LOAD(data, 1), c = CRC32C_LOAD(data, 2), d = CRC32C_LOAD(data, 3);
    a = _mm512_xor_si512(a, _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)crc)));
    for (data += CRC32C_FOLDED_BYTES, length -= CRC32C_FOLDED_BYTES; length >= CRC32C_FOLDED_BYTES;
         data += CRC32C_FOLDED_BYTES, length -= CRC32C_FOLDED_BYTES) {
        a = CRC32C_FOLD(a, powers, CRC32C_LOAD(data, 0));
        b = CRC32C_FOLD(b, powers, CRC32C_LOAD(data, 1));
        c = CRC32C_FOLD(c, powers, CRC32C_LOAD(data, 2));
        d = CRC32C_FOLD(d, powers, CRC32C_LOAD(data, 3));
    }
    powers = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)crc32c_powers[1]));
    b = CRC32C_FOLD(a, powers, b);
    c = CRC32C_FOLD(b, powers, c);
    d = CRC32C_FOLD(c, powers, d);
    __m128i rest = crc32c_fold_quarter(_mm512_extracti32x4_epi32(d, 0), _mm512_extracti32x4_epi32(d, 1));
    rest = crc32c_fold_quarter(rest, _mm512_extracti32x4_epi32(d, 2));
    rest = crc32c_fold_quarter(rest, _mm512_extracti32x4_epi32(d, 3));
    crc = CRC32C_STEP8(0, (uint64_t)_mm_extract_epi64(rest, 0));
    crc = CRC32C_STEP8(crc, (uint64_t)_mm_extract_epi64(rest, 1));
    return crc32c_by_cpu(crc, data, length);
}

static void crc32c_prepare_folding(void) {
    static const int moved_bits[3] = {2048, 512, 128};
    uint32_t power = 1u << 31; /* x^0: the lowest power is the highest bit */
    for (int exponent = 0; exponent <= 2048 + 31; exponent++) {
        for (int place = 0; place < 3; place++) {
            if (exponent == moved_bits[place] + 31)
                crc32c_powers[place][0] = power;
            if (exponent == moved_bits[place] - 33)
                crc32c_powers[place][1] = power;
        }
        power = power >> 1 ^ (power & 1 ? CRC32C_POLYNOMIAL : 0);
    }
    crc32c_by_vectors = CRC32C_FOLDING_SUPPORTED() ? 1 : 0;
}
#endif

static uint32_t crc32c(const void *data, size_t length) {
#ifdef CRC32C_FOLDING
    if (crc32c_by_vectors && length >= 2 * CRC32C_FOLDED_BYTES)
        return ~crc32c_by_folding(~0u, (const uint8_t *)data, length);
#endif
#ifdef CRC32C_HARDWARE
    if (crc32c_by_hardware)
        return ~crc32c_by_cpu(~0u, (const uint8_t *)data, length);
#endif
    return ~crc32c_by_table(~0u, (const uint8_t *)data, length);
}

static void crc32c_prepare(void) {
    static const uint8_t zeros[CRC32C_BLOCK] = {0};
    for (uint32_t value = 0; value < 256; value++) {
        uint32_t crc = value;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? CRC32C_POLYNOMIAL : 0);
        crc32c_bytes[0][value] = crc;
    }
    for (int ahead = 1; ahead < 8; ahead++)
        for (int value = 0; value < 256; value++) {
            uint32_t crc = crc32c_bytes[ahead - 1][value];
            crc32c_bytes[ahead][value] = crc >> 8 ^ crc32c_bytes[0][crc & 255];
        }
    for (int place = 0; place < 4; place++)
        for (uint32_t value = 0; value < 256; value++)
            crc32c_over_block[place][value] = crc32c_by_table(value << 8 * place, zeros, CRC32C_BLOCK);
#ifdef CRC32C_HARDWARE
    crc32c_by_hardware = CRC32C_SUPPORTED() ? 1 : 0;
#endif
#ifdef CRC32C_FOLDING
    crc32c_prepare_folding();
#endif
}

#endif
