#define _GNU_SOURCE
#include "clinux.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

static uint64_t mixed(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 32;
}

static uint64_t mixed_handle(uint64_t hash, int fd) {
    union {
        struct file_handle handle;
        unsigned char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
    } file;
    int mount;
    file.handle.handle_bytes = MAX_HANDLE_SZ;
    if (name_to_handle_at(fd, "", &file.handle, &mount, AT_EMPTY_PATH) != 0) return hash;
    for (unsigned at = 0; at < file.handle.handle_bytes && at < MAX_HANDLE_SZ; at += 8) {
        uint64_t word = 0;
        unsigned left = file.handle.handle_bytes - at;
        memcpy(&word, file.handle.f_handle + at, left < 8 ? left : 8);
        hash = mixed(hash, word);
    }
    return hash;
}

int clinux_stat_file(int fd, void *result, uint32_t *identity) {
    struct stat *status = result;
    struct statx facts;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &facts) != 0) return -1;
    *status = (struct stat){
        .st_ino = facts.stx_ino, .st_mode = facts.stx_mode, .st_nlink = facts.stx_nlink, .st_uid = facts.stx_uid,
        .st_gid = facts.stx_gid, .st_size = (off_t)facts.stx_size, .st_blksize = facts.stx_blksize,
        .st_blocks = (blkcnt_t)facts.stx_blocks, .st_dev = makedev(facts.stx_dev_major, facts.stx_dev_minor),
        .st_atim = {.tv_sec = facts.stx_atime.tv_sec, .tv_nsec = facts.stx_atime.tv_nsec},
        .st_mtim = {.tv_sec = facts.stx_mtime.tv_sec, .tv_nsec = facts.stx_mtime.tv_nsec},
        .st_ctim = {.tv_sec = facts.stx_ctime.tv_sec, .tv_nsec = facts.stx_ctime.tv_nsec},
    };
    uint64_t hash = mixed(0, facts.stx_ino);
    if (facts.stx_mask & STATX_BTIME && (facts.stx_btime.tv_sec || facts.stx_btime.tv_nsec))
        hash = mixed(mixed(hash, (uint64_t)facts.stx_btime.tv_sec), facts.stx_btime.tv_nsec);
    else
        hash = mixed_handle(hash, fd);
    *identity = hash >> 32 ? (uint32_t)(hash >> 32) : 1;
    return 0;
}
