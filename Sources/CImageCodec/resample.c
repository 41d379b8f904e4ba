#include "image_resample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

static const double PI = 3.14159265358979323846;

enum {
    MAX_SIDE = 65535,
    LOBES = 3,
    /// Rows that go through the horizontal filter at once, so that they share the loads of its weights.
    BATCH = 4,
    /// Bytes that vector code may read and write past the end of a buffer's row.
    PADDING = 64,
    BLOCK = 32,
};

/// The weights of one direction: result `i` is the sum of `stride` pixels from `start[i]` on, divided by 2^shift.
typedef struct {
    uint32_t count;
    /// A multiple of 4; excess weights are 0.
    uint32_t stride;
    int shift;
    /// One more than the last pixel that has a weight.
    uint32_t end;
    uint32_t *start;
    int16_t *weights;
} filter;

static double reduction(double from, double to, uint32_t count) { return (to - from) / count; }

static double support(double scale) { return LOBES * (scale > 1 ? scale : 1); }

static uint32_t stride(double scale) { return ((uint32_t)(2 * support(scale)) + 1 + 3) & ~3u; }

/// Weights are widened by `scale`, so that their sum has as many terms as pixels are reduced to one.
static void fill(filter *filter, double from, double to, uint32_t size) {
    const double scale = reduction(from, to, filter->count);
    const double width = scale > 1 ? scale : 1;
    // At the edges, where weights are missing, the largest is up to 1.23 / width.
    filter->shift = (int)floor(log2(32767 / 1.3 * width));
    // Sums of magnitudes are below 2, so 255 times one fits 32 bits up to here.
    if (filter->shift > 20) filter->shift = 20;
    const double unit = ldexp(1, filter->shift);
    const double step = PI / LOBES / width;
    const double turn_sin = sin(step), turn_cos = cos(step);
    double *exact = (double *)(void *)(filter->weights + (size_t)filter->count * filter->stride);
    for (uint32_t i = 0; i < filter->count; i++) {
        const double center = from + (i + 0.5) * scale;
        const double low = ceil(center - LOBES * width - 0.5), high = floor(center + LOBES * width - 0.5);
        const uint32_t first = low > 0 ? (uint32_t)low : 0;
        const uint32_t last = high < size - 1 ? (uint32_t)high : size - 1;
        double x = (first + 0.5 - center) / width;
        // Lanczos is 3 sin(3t) sin(t) / (9 t^2) with t = pi x / 3: one rotation a step gives both sines.
        double s = sin(PI / LOBES * x), c = cos(PI / LOBES * x), sum = 0;
        uint32_t n = 0;
        for (uint32_t at = first; at <= last && n < filter->stride; at++, n++) {
            const double t = PI / LOBES * x;
            exact[n] = fabs(t) < 1e-5 ? 1 : (3 - 4 * s * s) * s * s / (LOBES * t * t);
            sum += exact[n];
            const double next = s * turn_cos + c * turn_sin;
            c = c * turn_cos - s * turn_sin;
            s = next;
            x += 1 / width;
        }
        // Rounding the running sum keeps the total exact, so an even colour stays what it is.
        int16_t *weights = filter->weights + (size_t)i * filter->stride;
        double running = 0;
        int32_t given = 0;
        for (uint32_t k = 0; k < n; k++) {
            running += exact[k];
            const int32_t upTo = k + 1 == n ? (int32_t)unit : (int32_t)lrint(running / sum * unit);
            weights[k] = (int16_t)(upTo - given);
            given = upTo;
        }
        memset(weights + n, 0, (filter->stride - n) * sizeof(*weights));
        filter->start[i] = first;
        filter->end = last + 1;
    }
}

static uint8_t clamped(int32_t value) { return value < 0 ? 0 : value > 255 ? 255 : (uint8_t)value; }

static inline void across_rows(const filter *filter, uint32_t origin, const uint8_t *const rows[BATCH],
                               uint8_t *const results[BATCH], int channels) {
    const int32_t half = 1 << (filter->shift - 1);
    for (uint32_t i = 0; i < filter->count; i++) {
        const int16_t *weights = filter->weights + (size_t)i * filter->stride;
        const size_t offset = (size_t)(filter->start[i] - origin) * (size_t)channels;
        for (int row = 0; row < BATCH; row++) {
            const uint8_t *pixel = rows[row] + offset;
            int32_t sums[4] = {half, half, half, half};
            for (uint32_t k = 0; k < filter->stride; k++, pixel += channels) {
                for (int channel = 0; channel < channels; channel++) sums[channel] += weights[k] * pixel[channel];
            }
            for (int channel = 0; channel < channels; channel++) {
                results[row][(size_t)i * (size_t)channels + (size_t)channel] = clamped(sums[channel] >> filter->shift);
            }
        }
    }
}

static void across(const filter *filter, uint32_t origin, const uint8_t *const rows[BATCH],
                   uint8_t *const results[BATCH], int channels) {
    if (channels == 3) {
        across_rows(filter, origin, rows, results, 3);
    } else {
        across_rows(filter, origin, rows, results, 4);
    }
}

/// A block of bytes of one row of the result; `rows` has `count` of them, a multiple of 4.
static void down(const uint8_t *const *rows, const int16_t *weights, uint32_t count, int shift, size_t offset,
                 uint8_t *result) {
    int32_t sums[BLOCK];
    for (int i = 0; i < BLOCK; i++) sums[i] = 1 << (shift - 1);
    for (uint32_t k = 0; k < count; k++) {
        const uint8_t *row = rows[k] + offset;
        const int32_t weight = weights[k];
        for (int i = 0; i < BLOCK; i++) sums[i] += weight * row[i];
    }
    for (int i = 0; i < BLOCK; i++) result[i] = clamped(sums[i] >> shift);
}

static void premultiply(const uint8_t *pixels, uint32_t count, uint8_t *result) {
    for (size_t i = 0; i < 4 * (size_t)count; i += 4) {
        const uint32_t alpha = pixels[i + 3];
        for (size_t channel = 0; channel < 3; channel++) {
            const uint32_t product = pixels[i + channel] * alpha + 128;
            result[i + channel] = (uint8_t)((product + (product >> 8)) >> 8);
        }
        result[i + 3] = (uint8_t)alpha;
    }
}

#if defined(__x86_64__)
/// As `across`, four weights and four rows at a time: bytes become pairs of one channel, which `madd` multiplies and adds.
__attribute__((target("avx2"))) static void across_avx2(const filter *filter, uint32_t origin,
                                                        const uint8_t *const rows[BATCH],
                                                        uint8_t *const results[BATCH], int channels) {
    const __m256i pairs =
        channels == 3
            ? _mm256_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1, 6, -1, 9, -1, 7, -1, 10, -1, 8,
                               -1, 11, -1, -1, -1, -1, -1)
            : _mm256_setr_epi8(0, -1, 4, -1, 1, -1, 5, -1, 2, -1, 6, -1, 3, -1, 7, -1, 8, -1, 12, -1, 9, -1, 13, -1, 10,
                               -1, 14, -1, 11, -1, 15, -1);
    const __m256i spread = _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1);
    const __m128i half = _mm_set1_epi32(1 << (filter->shift - 1));
    const __m128i shift = _mm_cvtsi32_si128(filter->shift);
    const size_t step = 4 * (size_t)channels;
    for (uint32_t i = 0; i < filter->count; i++) {
        const int16_t *weights = filter->weights + (size_t)i * filter->stride;
        size_t offset = (size_t)(filter->start[i] - origin) * (size_t)channels;
        __m256i sums[BATCH] = {_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256(),
                               _mm256_setzero_si256()};
        for (uint32_t k = 0; k < filter->stride; k += 4, offset += step) {
            int64_t four;
            memcpy(&four, weights + k, sizeof(four));
            const __m256i weight = _mm256_permutevar8x32_epi32(_mm256_set1_epi64x(four), spread);
            for (int row = 0; row < BATCH; row++) {
                const __m256i bytes =
                    _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)(rows[row] + offset)));
                sums[row] =
                    _mm256_add_epi32(sums[row], _mm256_madd_epi16(_mm256_shuffle_epi8(bytes, pairs), weight));
            }
        }
        __m128i totals[BATCH];
        for (int row = 0; row < BATCH; row++) {
            const __m128i both =
                _mm_add_epi32(_mm256_castsi256_si128(sums[row]), _mm256_extracti128_si256(sums[row], 1));
            totals[row] = _mm_sra_epi32(_mm_add_epi32(both, half), shift);
        }
        const __m128i bytes =
            _mm_packus_epi16(_mm_packs_epi32(totals[0], totals[1]), _mm_packs_epi32(totals[2], totals[3]));
        uint32_t pixels[BATCH];
        memcpy(pixels, &bytes, sizeof(pixels));
        // The fourth byte of RGB is overwritten by the next pixel; that of the last one is padding.
        for (int row = 0; row < BATCH; row++) memcpy(results[row] + (size_t)i * (size_t)channels, &pixels[row], 4);
    }
}

/// As `down`, two rows at a time.
__attribute__((target("avx2"))) static void down_avx2(const uint8_t *const *rows, const int16_t *weights,
                                                      uint32_t count, int shift, size_t offset, uint8_t *result) {
    const __m256i zero = _mm256_setzero_si256();
    const __m256i half = _mm256_set1_epi32(1 << (shift - 1));
    const __m128i by = _mm_cvtsi32_si128(shift);
    __m256i sums[4] = {half, half, half, half};
    for (uint32_t k = 0; k < count; k += 2) {
        int32_t two;
        memcpy(&two, weights + k, sizeof(two));
        const __m256i weight = _mm256_set1_epi32(two);
        const __m256i one = _mm256_loadu_si256((const __m256i *)(const void *)(rows[k] + offset));
        const __m256i other = _mm256_loadu_si256((const __m256i *)(const void *)(rows[k + 1] + offset));
        const __m256i low = _mm256_unpacklo_epi8(one, other), high = _mm256_unpackhi_epi8(one, other);
        sums[0] = _mm256_add_epi32(sums[0], _mm256_madd_epi16(_mm256_unpacklo_epi8(low, zero), weight));
        sums[1] = _mm256_add_epi32(sums[1], _mm256_madd_epi16(_mm256_unpackhi_epi8(low, zero), weight));
        sums[2] = _mm256_add_epi32(sums[2], _mm256_madd_epi16(_mm256_unpacklo_epi8(high, zero), weight));
        sums[3] = _mm256_add_epi32(sums[3], _mm256_madd_epi16(_mm256_unpackhi_epi8(high, zero), weight));
    }
    for (int i = 0; i < 4; i++) sums[i] = _mm256_sra_epi32(sums[i], by);
    const __m256i bytes =
        _mm256_packus_epi16(_mm256_packs_epi32(sums[0], sums[1]), _mm256_packs_epi32(sums[2], sums[3]));
    _mm256_storeu_si256((__m256i *)(void *)result, bytes);
}

/// As `premultiply`.
__attribute__((target("avx2"))) static void premultiply_avx2(const uint8_t *pixels, uint32_t count, uint8_t *result) {
    const __m256i alphas = _mm256_setr_epi8(6, -1, 6, -1, 6, -1, -1, -1, 14, -1, 14, -1, 14, -1, -1, -1, 6, -1, 6, -1, 6,
                                            -1, -1, -1, 14, -1, 14, -1, 14, -1, -1, -1);
    // Alpha itself is multiplied by 255, which keeps it.
    const __m256i opaque = _mm256_set1_epi64x(255LL << 48);
    const __m256i half = _mm256_set1_epi16(128);
    uint32_t i = 0;
    for (; i + 4 <= count; i += 4) {
        const __m256i four = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(const void *)(pixels + 4 * i)));
        const __m256i by = _mm256_or_si256(_mm256_shuffle_epi8(four, alphas), opaque);
        const __m256i product = _mm256_add_epi16(_mm256_mullo_epi16(four, by), half);
        const __m256i quotient = _mm256_srli_epi16(_mm256_add_epi16(product, _mm256_srli_epi16(product, 8)), 8);
        const __m128i bytes =
            _mm_packus_epi16(_mm256_castsi256_si128(quotient), _mm256_extracti128_si256(quotient, 1));
        _mm_storeu_si128((__m128i *)(void *)(result + 4 * i), bytes);
    }
    premultiply(pixels + 4 * (size_t)i, count - i, result + 4 * (size_t)i);
}

static bool has_avx2(void) { return __builtin_cpu_supports("avx2"); }
#endif

static void unpremultiply(uint8_t *pixels, uint32_t count) {
    for (uint8_t *pixel = pixels; pixel < pixels + 4 * (size_t)count; pixel += 4) {
        const uint32_t alpha = pixel[3];
        if (alpha == 255) continue;
        const uint32_t scale = alpha == 0 ? 0 : (255 * 65536 + alpha / 2) / alpha;
        for (int channel = 0; channel < 3; channel++) {
            const uint32_t value = (pixel[channel] * scale + 32768) >> 16;
            pixel[channel] = value > 255 ? 255 : (uint8_t)value;
        }
    }
}

typedef struct {
    size_t row;
    size_t ring_row;
    size_t ring_rows;
    size_t source;
    size_t across;
    size_t down;
    size_t total;
} layout;

static bool is_valid(const image_resample_request *request) {
    const image_resample_request *r = request;
    if (r->channels != 3 && r->channels != 4) return false;
    if (r->width == 0 || r->height == 0 || r->to_width == 0 || r->to_height == 0) return false;
    if (r->width > MAX_SIDE || r->height > MAX_SIDE || r->to_width > MAX_SIDE || r->to_height > MAX_SIDE) return false;
    // NaN fails every comparison.
    return r->left >= 0 && r->top >= 0 && r->right <= r->width && r->bottom <= r->height && r->left < r->right &&
           r->top < r->bottom;
}

static size_t filter_bytes(uint32_t count, double scale) {
    const size_t weights = stride(scale);
    const size_t bytes = count * (sizeof(uint32_t) + weights * sizeof(int16_t)) + weights * sizeof(double);
    return (bytes + 2 * sizeof(double)) & ~(size_t)7;
}

static layout measure(const image_resample_request *request) {
    const double scale_x = reduction(request->left, request->right, request->to_width);
    const double scale_y = reduction(request->top, request->bottom, request->to_height);
    layout layout = {0};
    layout.row = (size_t)request->to_width * (size_t)request->channels;
    layout.ring_row = layout.row + PADDING;
    layout.ring_rows = stride(scale_y) + BATCH;
    layout.source = (size_t)request->width * (size_t)request->channels + PADDING + stride(scale_x) * 4;
    layout.across = filter_bytes(request->to_width, scale_x);
    layout.down = filter_bytes(request->to_height, scale_y);
    layout.total = layout.across + layout.down + layout.ring_rows * layout.ring_row + BATCH * layout.source +
                   stride(scale_y) * sizeof(uint8_t *);
    return layout;
}

/// * `count` zeroed entries of a filter in `memory`, which is aligned for doubles.
static filter filter_in(uint8_t *memory, uint32_t count, double from, double to, uint32_t size) {
    const uint32_t width = stride(reduction(from, to, count));
    filter filter = {count, width, 0, 0, NULL, NULL};
    // Strides are multiples of 4, so the doubles after the weights are aligned.
    filter.weights = (int16_t *)(void *)memory;
    filter.start = (uint32_t *)(void *)(memory + (size_t)count * width * sizeof(int16_t) + width * sizeof(double));
    fill(&filter, from, to, size);
    return filter;
}

struct image_resampler {
    layout layout;
    filter columns;
    filter lines;
    int channels;
    bool is_fast;
    uint8_t *result;
    const uint8_t **window;
    uint8_t *ring;
    /// Copies of the waiting rows.
    uint8_t *source;
    const uint8_t *waiting[BATCH];
    uint32_t waiting_count;
    /// Rows that were put.
    uint32_t put;
    /// Rows before it have gone across; row n is in the ring at n modulo its length.
    uint32_t made;
    /// Rows of the result that are written.
    uint32_t written;
};

size_t image_resample_memory(const image_resample_request *request) {
    return is_valid(request) ? sizeof(image_resampler) + measure(request).total : 0;
}

int image_resampler_open(const image_resample_request *request, uint8_t *result, image_resampler **opened) {
    *opened = NULL;
    if (!is_valid(request)) return IMAGE_RESAMPLE_INVALID;
    const layout layout = measure(request);
    // Zeroed: bytes past a row are multiplied by 0, but have to be there.
    uint8_t *next = calloc(1, sizeof(image_resampler) + layout.total);
    if (next == NULL) return IMAGE_RESAMPLE_NO_MEMORY;
    image_resampler *const resampler = (image_resampler *)(void *)next;
    next += sizeof *resampler;
    resampler->layout = layout;
    resampler->channels = request->channels;
    resampler->result = result;
#if defined(__x86_64__)
    resampler->is_fast = request->is_fast && has_avx2();
#endif
    resampler->columns = filter_in(next, request->to_width, request->left, request->right, request->width);
    next += layout.across;
    resampler->lines = filter_in(next, request->to_height, request->top, request->bottom, request->height);
    next += layout.down;
    resampler->window = (const uint8_t **)(void *)next;
    next += resampler->lines.stride * sizeof(*resampler->window);
    resampler->ring = next;
    resampler->source = next + layout.ring_rows * layout.ring_row;
    resampler->made = resampler->lines.start[0];
    *opened = resampler;
    return IMAGE_RESAMPLE_DONE;
}

static uint8_t *ring_row(const image_resampler *resampler, uint32_t row) {
    return resampler->ring + row % resampler->layout.ring_rows * resampler->layout.ring_row;
}

/// Filters the waiting rows into the ring.
static void go_across(image_resampler *resampler) {
    const uint32_t origin = resampler->columns.start[0], count = resampler->waiting_count;
    const uint8_t *rows[BATCH];
    uint8_t *results[BATCH];
    for (uint32_t i = 0; i < BATCH; i++) {
        const uint32_t row = i < count ? i : count - 1;
        rows[i] = resampler->waiting[row];
        results[i] = ring_row(resampler, resampler->made + row);
    }
#if defined(__x86_64__)
    if (resampler->is_fast) {
        across_avx2(&resampler->columns, origin, rows, results, resampler->channels);
    } else
#endif
    {
        across(&resampler->columns, origin, rows, results, resampler->channels);
    }
    resampler->made += count;
    resampler->waiting_count = 0;
}

/// Writes the next row of the result.
static void go_down(image_resampler *resampler, uint32_t needed) {
    const filter *lines = &resampler->lines;
    const uint32_t y = resampler->written++, first = lines->start[y];
    for (uint32_t k = 0; k < lines->stride; k++)
        resampler->window[k] = ring_row(resampler, first + k < needed ? first + k : needed - 1);
    const int16_t *weights = lines->weights + (size_t)y * lines->stride;
    const size_t length = resampler->layout.row;
    uint8_t *const line = resampler->result + y * length;
    for (size_t offset = 0; offset < length; offset += BLOCK) {
        uint8_t rest[BLOCK];
        const bool is_whole = length - offset >= BLOCK;
        uint8_t *const block = is_whole ? line + offset : rest;
#if defined(__x86_64__)
        if (resampler->is_fast) {
            down_avx2(resampler->window, weights, lines->stride, lines->shift, offset, block);
        } else
#endif
        {
            down(resampler->window, weights, lines->stride, lines->shift, offset, block);
        }
        if (!is_whole) memcpy(line + offset, rest, length - offset);
    }
    if (resampler->channels == 4) unpremultiply(line, resampler->layout.row / 4);
}

uint8_t *image_resampler_row(const image_resampler *resampler) {
    return resampler->source + resampler->waiting_count * resampler->layout.source;
}

/// * `stays`: the row can be read until the resampler is closed, with what vector code reads past its end.
static void put(image_resampler *resampler, const uint8_t *row, bool stays) {
    const filter *columns = &resampler->columns, *lines = &resampler->lines;
    const uint32_t number = resampler->put++, origin = columns->start[0];
    if (number < lines->start[0] || number >= lines->end) return;
    const uint8_t *pixels = row + (size_t)origin * (size_t)resampler->channels;
    uint8_t *const copy = image_resampler_row(resampler);
    stays |= row == copy;
    resampler->waiting[resampler->waiting_count++] = stays && resampler->channels == 3 ? pixels : copy;
    if (resampler->channels == 4) {
#if defined(__x86_64__)
        if (resampler->is_fast) {
            premultiply_avx2(pixels, columns->end - origin, copy);
        } else
#endif
        {
            premultiply(pixels, columns->end - origin, copy);
        }
    } else if (!stays) {
        memcpy(copy, pixels, 3 * (size_t)(columns->end - origin));
    }
    if (resampler->waiting_count < BATCH && number + 1 < lines->end) return;
    go_across(resampler);
    while (resampler->written < lines->count) {
        const uint32_t last = lines->start[resampler->written] + lines->stride;
        const uint32_t needed = last < lines->end ? last : lines->end;
        if (resampler->made < needed) return;
        go_down(resampler, needed);
    }
}

void image_resampler_put(image_resampler *resampler, const uint8_t *row) { put(resampler, row, false); }

void image_resampler_close(image_resampler *resampler) { free(resampler); }

int image_resample(const image_resample_request *request, const uint8_t *pixels, uint8_t *result) {
    image_resampler *resampler;
    const int status = image_resampler_open(request, result, &resampler);
    if (status != IMAGE_RESAMPLE_DONE) return status;
    const size_t row = (size_t)request->width * (size_t)request->channels;
    // Only the last row has nothing behind it.
    const bool is_long = row >= PADDING + 4 * (size_t)resampler->columns.stride;
    for (uint32_t y = 0; y < request->height; y++)
        put(resampler, pixels + y * row, is_long && y + 1 < request->height);
    image_resampler_close(resampler);
    return IMAGE_RESAMPLE_DONE;
}
