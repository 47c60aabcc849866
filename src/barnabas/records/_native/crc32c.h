/* CRC-32C (Castagnoli), as record batches have it: by the CPU's instruction where there is one, else by table.
 *
 * The instruction takes three cycles but one can start in each, so long data are read as three streams side by side:
 * the checksum of A|B is (that of A, moved over as many zero bytes as B has) xor (that of B). Moving over one whole
 * block is linear, hence four look-ups.
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

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
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

static uint32_t crc32c(const void *data, size_t length) {
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
}

#endif
