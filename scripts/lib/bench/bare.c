// The floor of the benchmark: the least a program has to do to fetch a list of URLs into files, on libcurl's multi interface and
// epoll. Each body is collected in memory and becomes a file in one atomic step (O_TMPFILE and linkat), in one of 256 folders.
//
//   bare [-p processes] [-c transfers in flight each] [-m none|cheapest|decode] [-a CA file] [-o folder] list
//
// -m decode checks before it keeps: JPEG, PNG and WebP are decoded in full, where a warning counts as broken; of GIF the header is
// looked at; each body gets a SHA-256; syncfs after every 256 files and at the end. Broken bodies are not kept. -m cheapest is the
// same with the least that the libraries can do: JPEG in grey at an eighth of its size, WebP without its filters.
// Without -o nothing is kept: of file:// URLs that is the check alone, of what another program has fetched.
#define _GNU_SOURCE
#include "decoders.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SHARDS = 256, FILES_PER_SYNC = 256, EVENTS = 256 };

static void fail(const char *what) {
    fprintf(stderr, "bare: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void *need(void *memory) {
    if (!memory) fail("malloc");
    return memory;
}

// ---- the list, shared by all processes: each takes the next URL when it has a free slot

static char **urls;
static size_t url_count;
static _Atomic size_t *next_url;

static void read_list(const char *path) {
    FILE *file = fopen(path, "r");
    if (!file) fail(path);
    char *line = NULL;
    size_t capacity = 0, room = 0;
    ssize_t length;
    while ((length = getline(&line, &room, file)) > 0) {
        while (length > 0 && (unsigned char)line[length - 1] <= ' ') line[--length] = 0;
        if (length == 0) continue;
        if (url_count == capacity) urls = need(realloc(urls, (capacity = capacity ? 2 * capacity : 4096) * sizeof *urls));
        urls[url_count++] = need(strdup(line));
    }
}

// ---- checks

static bool checks, cheaply;

static bool is_whole(const unsigned char *bytes, size_t count) {
    if (count > 3 && !memcmp(bytes, "\xFF\xD8\xFF", 3)) return jpeg_decodes(bytes, count, cheaply);
    if (count > 8 && !memcmp(bytes, "\x89PNG\r\n\x1A\n", 8)) return png_is_whole(bytes, count);
    if (count > 13 && (!memcmp(bytes, "GIF87a", 6) || !memcmp(bytes, "GIF89a", 6))) return true;
    return count > 16 && !memcmp(bytes, "RIFF", 4) && !memcmp(bytes + 8, "WEBP", 4) && webp_decodes(bytes, count, cheaply);
}

// ---- files

static const char *folder;
static int root;
static int unsynced;

static void make_folders(void) {
    if (mkdir(folder, 0755) < 0 && errno != EEXIST) fail(folder);
    root = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0) fail(folder);
    for (int shard = 0; shard < SHARDS; shard++) {
        char name[8];
        snprintf(name, sizeof name, "%02x", shard);
        if (mkdirat(root, name, 0755) < 0 && errno != EEXIST) fail(name);
    }
}

static uint64_t fnv(const char *text) {
    uint64_t hash = 0xcbf29ce484222325u;
    while (*text) hash = (hash ^ (unsigned char)*text++) * 0x100000001b3u;
    return hash;
}

static void keep(const char *url, const unsigned char *bytes, size_t count) {
    char shard[8], name[32], link[40];
    uint64_t hash = fnv(url);
    snprintf(shard, sizeof shard, "%02x", (unsigned)(hash >> 56));
    snprintf(name, sizeof name, "%s/%016llx", shard, (unsigned long long)hash);
    int file = openat(root, shard, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0644);
    if (file < 0) fail("open an unnamed file");
    for (size_t done = 0; done < count;) {
        ssize_t written = write(file, bytes + done, count - done);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) fail("write");
        done += (size_t)written;
    }
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    if (linkat(AT_FDCWD, link, root, name, AT_SYMLINK_FOLLOW) < 0) fail("link");
    close(file);
    if (checks && ++unsynced == FILES_PER_SYNC) {
        if (syncfs(root) < 0) fail("syncfs");
        unsynced = 0;
    }
}

// ---- transfers

struct transfer {
    CURL *handle;
    const char *url;
    unsigned char *bytes;
    size_t count, capacity;
};

static CURLM *multi;
static int poller;
static long timeout_ms = -1;
static size_t kept, failed, broken;

static size_t on_bytes(char *bytes, size_t size, size_t count, void *context) {
    struct transfer *transfer = context;
    count *= size;
    if (transfer->count + count > transfer->capacity) {
        size_t capacity = transfer->capacity ? transfer->capacity : 65536;
        while (capacity < transfer->count + count) capacity *= 2;
        transfer->bytes = need(realloc(transfer->bytes, transfer->capacity = capacity));
    }
    memcpy(transfer->bytes + transfer->count, bytes, count);
    transfer->count += count;
    return count;
}

static int on_socket(CURL *handle, curl_socket_t socket, int what, void *context, void *known) {
    (void)handle;
    (void)context;
    if (what == CURL_POLL_REMOVE) {
        epoll_ctl(poller, EPOLL_CTL_DEL, socket, NULL);
        return 0;
    }
    struct epoll_event event = {.data.fd = socket};
    event.events = (what & CURL_POLL_IN ? EPOLLIN : 0u) | (what & CURL_POLL_OUT ? EPOLLOUT : 0u);
    if (!known) curl_multi_assign(multi, socket, &poller);
    if (epoll_ctl(poller, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, socket, &event) < 0
        && epoll_ctl(poller, known ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, socket, &event) < 0)
        fail("epoll_ctl");
    return 0;
}

static int on_timer(CURLM *unused, long milliseconds, void *context) {
    (void)unused;
    (void)context;
    timeout_ms = milliseconds;
    return 0;
}

static bool begin(struct transfer *transfer) {
    size_t index = atomic_fetch_add(next_url, 1);
    if (index >= url_count) return false;
    transfer->url = urls[index];
    transfer->count = 0;
    curl_easy_setopt(transfer->handle, CURLOPT_URL, transfer->url);
    curl_multi_add_handle(multi, transfer->handle);
    return true;
}

static void finish(struct transfer *transfer, CURLcode result) {
    curl_multi_remove_handle(multi, transfer->handle);
    if (result != CURLE_OK) {
        failed++;
        return;
    }
    if (checks) {
        unsigned char digest[EVP_MAX_MD_SIZE];
        if (!is_whole(transfer->bytes, transfer->count)) {
            broken++;
            return;
        }
        if (!EVP_Digest(transfer->bytes, transfer->count, digest, NULL, EVP_sha256(), NULL)) fail("sha256");
    }
    if (folder) keep(transfer->url, transfer->bytes, transfer->count);
    kept++;
}

static const char *authorities;

static CURL *new_handle(struct transfer *transfer) {
    CURL *handle = need(curl_easy_init());
    curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(handle, CURLOPT_WRITEDATA, transfer);
    curl_easy_setopt(handle, CURLOPT_PRIVATE, transfer);
    curl_easy_setopt(handle, CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(handle, CURLOPT_BUFFERSIZE, 131072L);
    curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT, 10L);
    curl_easy_setopt(handle, CURLOPT_TIMEOUT, 60L);
    if (authorities) curl_easy_setopt(handle, CURLOPT_CAINFO, authorities);
    return handle;
}

static void work(int concurrent) {
    int still = 0, running = 0;
    poller = epoll_create1(EPOLL_CLOEXEC);
    multi = need(curl_multi_init());
    curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, 4L * concurrent);
    struct transfer *transfers = need(calloc((size_t)concurrent, sizeof *transfers));
    for (int index = 0; index < concurrent; index++) {
        transfers[index].handle = new_handle(&transfers[index]);
        running += begin(&transfers[index]);
    }
    curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &still);
    while (running > 0) {
        struct epoll_event events[EVENTS];
        int count = epoll_wait(poller, events, EVENTS, timeout_ms < 0 ? 1000 : (int)timeout_ms);
        for (int index = 0; index < count; index++) {
            unsigned seen = events[index].events;
            int what = (seen & (EPOLLIN | EPOLLHUP) ? CURL_CSELECT_IN : 0) | (seen & EPOLLOUT ? CURL_CSELECT_OUT : 0)
                | (seen & EPOLLERR ? CURL_CSELECT_ERR : 0);
            curl_multi_socket_action(multi, events[index].data.fd, what, &still);
        }
        if (count <= 0 || timeout_ms == 0) curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &still);
        CURLMsg *message;
        int left;
        while ((message = curl_multi_info_read(multi, &left))) {
            if (message->msg != CURLMSG_DONE) continue;
            struct transfer *transfer;
            CURLcode result = message->data.result;
            curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&transfer);
            finish(transfer, result);
            if (!begin(transfer)) running--;
        }
    }
    if (checks && folder && syncfs(root) < 0) fail("syncfs");
    printf("kept %zu failed %zu broken %zu\n", kept, failed, broken);
}

int main(int count, char **words) {
    int processes = 1, concurrent = 32, option;
    while ((option = getopt(count, words, "p:c:m:o:a:")) > 0) {
        switch (option) {
        case 'p': processes = atoi(optarg); break;
        case 'c': concurrent = atoi(optarg); break;
        case 'm': checks = strcmp(optarg, "none"), cheaply = !strcmp(optarg, "cheapest"); break;
        case 'o': folder = optarg; break;
        case 'a': authorities = optarg; break;
        default: return 64;
        }
    }
    if (optind + 1 != count || processes < 1 || concurrent < 1) {
        fprintf(stderr, "usage: bare [-p processes] [-c in flight each] [-m none|cheapest|decode] [-a CA file] [-o folder] list\n");
        return 64;
    }
    read_list(words[optind]);
    next_url = mmap(NULL, sizeof *next_url, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (next_url == MAP_FAILED) fail("mmap");
    if (folder) make_folders();
    curl_global_init(CURL_GLOBAL_ALL);
    for (int index = 0; index < processes; index++) {
        pid_t child = fork();
        if (child < 0) fail("fork");
        if (child == 0) {
            work(concurrent);
            return 0;
        }
    }
    int worst = 0, status;
    while (wait(&status) > 0 || errno == EINTR)
        if (status != 0) worst = 1;
    return worst;
}
