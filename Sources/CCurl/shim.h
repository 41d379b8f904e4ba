// Typed doors for libcurl's variadic functions, one for each kind of argument: Swift cannot call a variadic C function, and the
// wrong kind of argument would be undefined behaviour.
#pragma once
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

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
/// Other pointers: callback data, lists, the error buffer, the share; curl keeps the pointer.
static inline CURLcode ccurl_set_pointer(CURL *handle, CURLoption option, void *value) {
    return curl_easy_setopt(handle, option, value);
}
/// CURLOPT_WRITEFUNCTION and CURLOPT_HEADERFUNCTION.
static inline CURLcode ccurl_set_write(CURL *handle, CURLoption option, curl_write_callback function) {
    return curl_easy_setopt(handle, option, function);
}
/// CURLOPT_OPENSOCKETFUNCTION.
static inline CURLcode ccurl_set_opensocket(CURL *handle, curl_opensocket_callback function) {
    return curl_easy_setopt(handle, CURLOPT_OPENSOCKETFUNCTION, function);
}
/// CURLOPT_CLOSESOCKETFUNCTION.
static inline CURLcode ccurl_set_closesocket(CURL *handle, curl_closesocket_callback function) {
    return curl_easy_setopt(handle, CURLOPT_CLOSESOCKETFUNCTION, function);
}
/// CURLOPT_PREREQFUNCTION.
static inline CURLcode ccurl_set_prereq(CURL *handle, curl_prereq_callback function) {
    return curl_easy_setopt(handle, CURLOPT_PREREQFUNCTION, function);
}
/// Infos of CURLINFO_LONG; 0 where there is none.
static inline long ccurl_get_long(CURL *handle, CURLINFO info) {
    long value = 0;
    curl_easy_getinfo(handle, info, &value);
    return value;
}
/// Infos of CURLINFO_OFF_T; 0 where there is none.
static inline curl_off_t ccurl_get_off(CURL *handle, CURLINFO info) {
    curl_off_t value = 0;
    curl_easy_getinfo(handle, info, &value);
    return value;
}
/// Infos of CURLINFO_STRING and CURLINFO_PRIVATE; NULL where there is none.
static inline const void *ccurl_get_pointer(CURL *handle, CURLINFO info) {
    const char *value = NULL;
    curl_easy_getinfo(handle, info, &value);
    return value;
}
/// CURLMOPT_SOCKETFUNCTION and CURLMOPT_TIMERFUNCTION with the pointer both get.
static inline void ccurl_multi_set_callbacks(CURLM *multi, curl_socket_callback socket, curl_multi_timer_callback timer,
                                             void *context) {
    curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, socket);
    curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, context);
    curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, timer);
    curl_multi_setopt(multi, CURLMOPT_TIMERDATA, context);
}
/// Options of a multi handle that take a long.
static inline CURLMcode ccurl_multi_set_long(CURLM *multi, CURLMoption option, long value) {
    return curl_multi_setopt(multi, option, value);
}
/// CURLSHOPT_SHARE: what a share handle shares.
static inline CURLSHcode ccurl_share(CURLSH *share, curl_lock_data data) {
    return curl_share_setopt(share, CURLSHOPT_SHARE, data);
}
/// CURLAUTH_BASIC: a macro with a cast, which Swift does not import.
static inline long ccurl_auth_basic(void) { return (long)CURLAUTH_BASIC; }
/// CURLAUTH_DIGEST, likewise.
static inline long ccurl_auth_digest(void) { return (long)CURLAUTH_DIGEST; }
/// CURLAUTH_BEARER, likewise.
static inline long ccurl_auth_bearer(void) { return (long)CURLAUTH_BEARER; }
