// What the check of an image costs at the level decode: prints the seconds of CPU time, the bytes by which the peak of the resident memory
// rose, the seconds that the default limits grant, and the bytes that the structure says; exit 1 if the image is not whole.
#include "image_codec.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/// Of /proc/self/status, in bytes: `VmRSS`, or `VmHWM`, its peak.
static long resident(const char *name) {
    char line[256];
    long found = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        if (strncmp(line, name, strlen(name)) == 0) found = strtol(line + strlen(name) + 1, NULL, 10) * 1024;
    if (status) fclose(status);
    return found;
}

/// The peak starts anew from what is resident now.
static void reset_peak(void) {
    FILE *file = fopen("/proc/self/clear_refs", "w");
    if (!file) return;
    fputs("5", file);
    fclose(file);
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int count, char **words) {
    struct stat facts;
    int file = count == 2 ? open(words[1], O_RDONLY) : -1;
    if (file < 0 || fstat(file, &facts) != 0) return 64;
    uint8_t *bytes = malloc((size_t)facts.st_size);
    for (off_t done = 0; done < facts.st_size;) {
        ssize_t got = read(file, bytes + done, (size_t)(facts.st_size - done));
        if (got <= 0) return 66;
        done += got;
    }
    // ImageCoder.Limits, but for the time, which is measured.
    image_codec_limits limits = {INT32_MAX, 500000000, 100000000, 100, 10000, 256 << 20, 2000000000, 20};
    image_codec_request request = {.bytes = bytes, .count = (size_t)facts.st_size, .limits = limits, .frames = 1};
    request.limits.cpu_nanoseconds = (uint64_t)1 << 60;
    request.format = bytes[0] == 0xFF ? IMAGE_CODEC_JPEG : bytes[0] == 0x89 ? IMAGE_CODEC_PNG : IMAGE_CODEC_GIF;
    image_codec_result result;
    reset_peak();
    long before = resident("VmRSS");
    double start = seconds();
    request.task = IMAGE_CODEC_STRUCTURE;
    image_codec_run(&request, &result);
    uint64_t memory = result.memory, pixels = (uint64_t)result.width * result.height;
    request.task = IMAGE_CODEC_CHECK;
    if (result.status == IMAGE_CODEC_WHOLE) image_codec_run(&request, &result);
    double granted = (double)image_codec_cpu_limit(&limits, request.count, pixels) / 1e9;
    printf("%.2f %ld %.2f %llu\n", seconds() - start, resident("VmHWM") - before, granted, (unsigned long long)memory);
    if (result.status != IMAGE_CODEC_WHOLE) fprintf(stderr, "%s\n", result.message);
    return result.status != IMAGE_CODEC_WHOLE;
}
