// Typed wrappers of libcurl's variadic functions, one per argument type: Swift cannot call variadic C functions, and an argument of the
// wrong type would be undefined behaviour.
#pragma once
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

/// Options below CURLOPTTYPE_OBJECTPOINT.
static inline CURLcode ccurl_set_long(CURL *handle, CURLoption option, long value) {
    return curl_easy_setopt(handle, option, value);
}
/// Options of CURLOPTTYPE_OFF_T.
static inline CURLcode ccurl_set_off(CURL *handle, CURLoption option, curl_off_t value) {
    return curl_easy_setopt(handle, option, value);
}
/// Options of CURLOPTTYPE_STRINGPOINT; curl keeps a copy.
static inline CURLcode ccurl_set_string(CURL *handle, CURLoption option, const char *value) {
    return curl_easy_setopt(handle, option, value);
}
/// Other pointers: callback data, lists, error buffer, share; curl keeps the pointer.
static inline CURLcode ccurl_set_pointer(CURL *handle, CURLoption option, void *value) {
    return curl_easy_setopt(handle, option, value);
}
/// CURLOPT_WRITEFUNCTION and CURLOPT_HEADERFUNCTION.
static inline CURLcode ccurl_set_write(CURL *handle, CURLoption option, curl_write_callback function) {
    return curl_easy_setopt(handle, option, function);
}
/// The header of a response: what was received of it, and how much of it is accepted.
typedef struct {
    long bytes, lines;
    long max_bytes, max_lines;
    /// Whether the last response's header is complete: curl accepts one truncated by the end of the connection.
    bool is_complete;
    /// Whether it has a Content-Encoding.
    bool is_coded;
    /// To which the bytes of all lines that set a cookie are added; may be NULL.
    long *cookie_bytes;
    /// Called at the end of a header that has one, before the body; may be NULL.
    void (*did_end_coded)(void *owner);
    void *owner;
} ccurl_header;
/// A CURLOPT_HEADERFUNCTION for a ccurl_header. In C, because it is called for each line.
static inline size_t ccurl_count_header(char *line, size_t size, size_t count, void *context) {
    ccurl_header *header = context;
    size_t length = size * count;
    header->bytes += (long)length;
    header->lines += 1;
    if (length >= 5 && memcmp(line, "HTTP/", 5) == 0) header->is_complete = header->is_coded = false;
    else if (length > 0 && (line[0] == '\r' || line[0] == '\n')) {
        header->is_complete = true;
        if (header->is_coded && header->did_end_coded) header->did_end_coded(header->owner);
    } else if (length > 17 && (line[0] | 32) == 'c' && strncasecmp(line, "Content-Encoding:", 17) == 0) {
        header->is_coded = true;
    } else if (header->cookie_bytes && length > 11 && (line[0] | 32) == 's' && strncasecmp(line, "Set-Cookie:", 11) == 0) {
        *header->cookie_bytes += (long)length;
    }
    return header->bytes <= header->max_bytes && header->lines <= header->max_lines ? length : 0;
}
/// CURLOPT_READFUNCTION and CURLOPT_SEEKFUNCTION, with `context` for both: the body of a request.
static inline void ccurl_set_body(CURL *handle, curl_read_callback read, curl_seek_callback seek, void *context) {
    curl_easy_setopt(handle, CURLOPT_READFUNCTION, read);
    curl_easy_setopt(handle, CURLOPT_READDATA, context);
    curl_easy_setopt(handle, CURLOPT_SEEKFUNCTION, seek);
    curl_easy_setopt(handle, CURLOPT_SEEKDATA, context);
}
/// CURLOPT_XFERINFOFUNCTION, which ends the transfer by returning 1.
static inline void ccurl_set_progress(CURL *handle, curl_xferinfo_callback function, void *context) {
    curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, function);
    curl_easy_setopt(handle, CURLOPT_XFERINFODATA, context);
    curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
}
static inline CURLcode ccurl_set_opensocket(CURL *handle, curl_opensocket_callback function) {
    return curl_easy_setopt(handle, CURLOPT_OPENSOCKETFUNCTION, function);
}
static inline CURLcode ccurl_set_closesocket(CURL *handle, curl_closesocket_callback function) {
    return curl_easy_setopt(handle, CURLOPT_CLOSESOCKETFUNCTION, function);
}
static inline CURLcode ccurl_set_prereq(CURL *handle, curl_prereq_callback function) {
    return curl_easy_setopt(handle, CURLOPT_PREREQFUNCTION, function);
}
/// Infos of CURLINFO_LONG; 0 if missing.
static inline long ccurl_get_long(CURL *handle, CURLINFO info) {
    long value = 0;
    curl_easy_getinfo(handle, info, &value);
    return value;
}
/// Bytes of the cookies that a handle has, as lines of a cookie file.
static inline long ccurl_cookie_bytes(CURL *handle) {
    struct curl_slist *lines = NULL;
    long sum = 0;
    if (curl_easy_getinfo(handle, CURLINFO_COOKIELIST, &lines) != CURLE_OK) return 0;
    for (struct curl_slist *line = lines; line; line = line->next) sum += (long)strlen(line->data);
    curl_slist_free_all(lines);
    return sum;
}
/// Infos of CURLINFO_OFF_T; 0 if missing.
static inline curl_off_t ccurl_get_off(CURL *handle, CURLINFO info) {
    curl_off_t value = 0;
    curl_easy_getinfo(handle, info, &value);
    return value;
}
/// Infos of CURLINFO_STRING and CURLINFO_PRIVATE; NULL if missing.
static inline const void *ccurl_get_pointer(CURL *handle, CURLINFO info) {
    const char *value = NULL;
    curl_easy_getinfo(handle, info, &value);
    return value;
}
/// CURLMOPT_SOCKETFUNCTION and CURLMOPT_TIMERFUNCTION, with `context` for both.
static inline void ccurl_multi_set_callbacks(CURLM *multi, curl_socket_callback socket, curl_multi_timer_callback timer,
                                             void *context) {
    curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, socket);
    curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, context);
    curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, timer);
    curl_multi_setopt(multi, CURLMOPT_TIMERDATA, context);
}
/// Multi options of type long.
static inline CURLMcode ccurl_multi_set_long(CURLM *multi, CURLMoption option, long value) {
    return curl_multi_setopt(multi, option, value);
}
static inline CURLSHcode ccurl_share(CURLSH *share, curl_lock_data data) {
    return curl_share_setopt(share, CURLSHOPT_SHARE, data);
}
/// CURLAUTH_* are macros with a cast, which Swift does not import.
static inline long ccurl_auth_basic(void) { return (long)CURLAUTH_BASIC; }
static inline long ccurl_auth_digest(void) { return (long)CURLAUTH_DIGEST; }
static inline long ccurl_auth_bearer(void) { return (long)CURLAUTH_BEARER; }
