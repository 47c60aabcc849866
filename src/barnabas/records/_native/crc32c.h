/* CRC-32C (Castagnoli), as record batches have it: by the CPU's instructions where it has some, else by table.
 *
 * The instruction takes three cycles but one can start in each, so long data are read as three streams side by side:
 * the checksum of A|B is (that of A, moved over as many zero bytes as B has) xor (that of B). Moving over one whole
 * block is linear, hence four look-ups.
 *
 * Where the CPU multiplies polynomials in vectors (VPCLMULQDQ), long data are folded: 256 bytes stand in registers, and
 * are multiplied by the power of x that moves them over the next 256, which are then added. What is left in the end has
 * the checksum of all that went in. In the bit order of this checksum 128 bits are moved by D bits when their first half
 * is multiplied by x^(D+31) and their second by x^(D-33).
 *
 * Data that another core has just received come from far: what is read next is asked for ahead, since the CPU loses track
 * of three streams that start anew every few lines.
 *
 * crc32c_prepare() fills the tables and must run before the first crc32c(); each module does so when it is imported. */
#ifndef BARNABAS_CRC32C_H
#define BARNABAS_CRC32C_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define CRC32C_POLYNOMIAL 0x82F63B78u
#define CRC32C_BLOCK 1024
#define CRC32C_LINE 64
#define CRC32C_AHEAD (6 * CRC32C_BLOCK)

static uint32_t crc32c_bytes[8][256];
static uint32_t crc32c_over_block[4][256];
static int crc32c_by_hardware = 0;

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#include <immintrin.h>
#define CRC32C_FOLDING
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
        for (size_t line = 0; line < CRC32C_BLOCK; line += CRC32C_LINE) {
            for (size_t stream = 0; stream < 3; stream++)
                __builtin_prefetch(data + CRC32C_AHEAD + stream * CRC32C_BLOCK + line);
            for (size_t i = line; i < line + CRC32C_LINE; i += 8) {
                crc = CRC32C_STEP8(crc, crc32c_word(data + i));
                second = CRC32C_STEP8(second, crc32c_word(data + CRC32C_BLOCK + i));
                third = CRC32C_STEP8(third, crc32c_word(data + 2 * CRC32C_BLOCK + i));
            }
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
#define CRC32C_FOLDED 256
typedef uint32_t (*crc32c_folding)(uint32_t crc, const uint8_t *data, size_t length);
static crc32c_folding crc32c_fold = 0; /* the widest that the CPU has, if it has one */
static uint64_t crc32c_powers[2];      /* x^(D+31) and x^(D-33) for the D = 2048 bits that are folded at a time */

/* For the CPU's features `features`, with `count` vectors of the type `vector`, and what to do with them. */
#define CRC32C_DEFINE_FOLDING(name, features, vector, count, load, store, powers, add_crc, multiply, xor_of)          \
    __attribute__((target("sse4.2,pclmul,vpclmulqdq," features))) static uint32_t name(                               \
        uint32_t crc, const uint8_t *data, size_t length) {                                                           \
        uint8_t folded[CRC32C_FOLDED];                                                                                \
        vector x = powers(_mm_loadu_si128((const __m128i *)crc32c_powers)), v[count];                                 \
        for (int i = 0; i < count; i++)                                                                               \
            v[i] = load((const vector *)data + i);                                                                    \
        v[0] = add_crc(v[0], _mm_cvtsi32_si128((int)crc));                                                            \
        while ((data += CRC32C_FOLDED, length -= CRC32C_FOLDED) >= CRC32C_FOLDED) {                                   \
            for (int line = 0; line < CRC32C_FOLDED; line += CRC32C_LINE)                                             \
                __builtin_prefetch(data + CRC32C_AHEAD + line);                                                       \
            for (int i = 0; i < count; i++)                                                                           \
                v[i] = xor_of(multiply(v[i], x, 0x00), multiply(v[i], x, 0x11), load((const vector *)data + i));      \
        }                                                                                                             \
        for (int i = 0; i < count; i++)                                                                               \
            store((vector *)folded + i, v[i]);                                                                        \
        return crc32c_by_cpu(crc32c_by_cpu(0, folded, CRC32C_FOLDED), data, length);                                  \
    }

#define CRC32C_ADD_TO_256(value, crc) _mm256_xor_si256(value, _mm256_zextsi128_si256(crc))
#define CRC32C_ADD_TO_512(value, crc) _mm512_xor_si512(value, _mm512_zextsi128_si512(crc))
#define CRC32C_XOR_256(a, b, c) _mm256_xor_si256(_mm256_xor_si256(a, b), c)
#define CRC32C_XOR_512(a, b, c) _mm512_ternarylogic_epi64(a, b, c, 0x96)

CRC32C_DEFINE_FOLDING(crc32c_fold_256, "avx2", __m256i, 8, _mm256_loadu_si256, _mm256_storeu_si256,
                      _mm256_broadcastsi128_si256, CRC32C_ADD_TO_256, _mm256_clmulepi64_epi128, CRC32C_XOR_256)
CRC32C_DEFINE_FOLDING(crc32c_fold_512, "avx512f", __m512i, 4, _mm512_loadu_si512, _mm512_storeu_si512,
                      _mm512_broadcast_i32x4, CRC32C_ADD_TO_512, _mm512_clmulepi64_epi128, CRC32C_XOR_512)

static void crc32c_prepare_folding(void) {
    uint32_t power = 1u << 31; /* x^0: the lowest power is the highest bit */
    for (int exponent = 0; exponent <= 8 * CRC32C_FOLDED + 31; exponent++) {
        if (exponent == 8 * CRC32C_FOLDED - 33)
            crc32c_powers[1] = power;
        crc32c_powers[0] = power;
        power = power >> 1 ^ (power & 1 ? CRC32C_POLYNOMIAL : 0);
    }
    if (__builtin_cpu_supports("vpclmulqdq"))
        crc32c_fold = __builtin_cpu_supports("avx512f") ? crc32c_fold_512
                      : __builtin_cpu_supports("avx2") ? crc32c_fold_256
                                                       : 0;
}
#endif

static uint32_t crc32c(const void *data, size_t length) {
#ifdef CRC32C_FOLDING
    if (crc32c_fold && length >= 2 * CRC32C_FOLDED)
        return ~crc32c_fold(~0u, (const uint8_t *)data, length);
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
