// c-ares as one channel for each resolver: options are a struct whose members differ between versions, which Swift would have to know.
#pragma once
#define CARES_NO_DEPRECATED
#include <ares.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

typedef struct ares_channeldata *ccares_channel;

/// Opens a channel with the search list of a resolv.conf(5), or returns NULL without memory.
/// * `server`: `ADDRESS:PORT` or `[ADDRESS]:PORT`; NULL: those of the file.
/// * `changed`: called with `context` when the events wanted of a socket change; both 0: it is closed.
static inline ccares_channel ccares_open(const char *server, char *file, int timeout_ms, ares_sock_state_cb changed,
                                         void *context) {
    struct ares_options options;
    memset(&options, 0, sizeof options);
    // SERVFAIL and REFUSED are answers to be seen, and HOSTALIASES is not read.
    options.flags = ARES_FLAG_NOCHECKRESP | ARES_FLAG_NOALIASES;
    options.timeout = timeout_ms;
    options.tries = 1;
    // Only DNS: /etc/hosts would be read again for each name.
    char lookups[] = "b";
    options.lookups = lookups;
    options.resolvconf_path = file;
    options.sock_state_cb = changed;
    options.sock_state_cb_data = context;
    int mask = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS | ARES_OPT_SOCK_STATE_CB |
               ARES_OPT_RESOLVCONF;
#ifdef ARES_OPT_UDP_MAX_QUERIES
    // A new source port now and then, which a forged answer would have to guess (RFC 5452).
    options.udp_max_queries = 256;
    mask |= ARES_OPT_UDP_MAX_QUERIES;
#endif
#ifdef ARES_OPT_QUERY_CACHE
    // 0: answers are kept by NameCache alone.
    options.qcache_max_ttl = 0;
    mask |= ARES_OPT_QUERY_CACHE;
#endif
    struct ares_channeldata *channel = NULL;
    if (ares_library_init(ARES_LIB_INIT_ALL) != ARES_SUCCESS) return NULL;
    if (ares_init_options(&channel, &options, mask) != ARES_SUCCESS) return NULL;
    if (server && ares_set_servers_ports_csv(channel, server) != ARES_SUCCESS) {
        ares_destroy(channel);
        return NULL;
    }
    return channel;
}

/// Writes the address of the channel's resolver `index` (`ADDRESS:PORT`), and returns false if there is none.
static inline bool ccares_server(ccares_channel channel, int index, char *text, size_t size) {
    struct ares_addr_port_node *list = NULL;
    if (ares_get_servers_ports(channel, &list) != ARES_SUCCESS) return false;
    struct ares_addr_port_node *node = list;
    while (node && index-- > 0) node = node->next;
    bool found = false;
    if (node) {
        char address[64];
        int port = node->udp_port ? node->udp_port : 53;
        if (inet_ntop(node->family, &node->addr, address, sizeof address)) {
            snprintf(text, size, node->family == AF_INET6 ? "[%s]:%d" : "%s:%d", address, port);
            found = true;
        }
    }
    if (list) ares_free_data(list);
    return found;
}

/// Asks for the addresses of one family; `ended` may be called before it returns.
static inline void ccares_ask(ccares_channel channel, const char *name, int family, ares_addrinfo_callback ended,
                              void *context) {
    struct ares_addrinfo_hints hints;
    memset(&hints, 0, sizeof hints);
    hints.ai_family = family;
    hints.ai_flags = ARES_AI_NOSORT;
    ares_getaddrinfo(channel, name, NULL, &hints, ended, context);
}

/// What the end of a query means.
typedef enum {
    CCARES_ADDRESSES,
    CCARES_NO_NAME,
    CCARES_NO_ADDRESS,
    /// The resolver's own failure, or an answer that cannot be read.
    CCARES_FAILED,
    CCARES_UNANSWERED,
    CCARES_WITHDRAWN,
} ccares_kind_t;

/// The kinds of ARES_* codes, which are macros in some versions and an enum in others.
static inline ccares_kind_t ccares_kind(int status) {
    switch (status) {
    case ARES_SUCCESS: return CCARES_ADDRESSES;
    case ARES_ENOTFOUND:
    case ARES_EBADNAME: return CCARES_NO_NAME;
    case ARES_ENODATA: return CCARES_NO_ADDRESS;
    case ARES_ECONNREFUSED:
    case ARES_ETIMEOUT:
    case ARES_EFILE:
    case ARES_EOF:
    case ARES_ENOMEM: return CCARES_UNANSWERED;
    case ARES_EDESTRUCTION:
    case ARES_ECANCELLED: return CCARES_WITHDRAWN;
    default: return CCARES_FAILED;
    }
}
