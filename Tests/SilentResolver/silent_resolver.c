// A resolver that never answers, for names below .silent: preloaded into a program whose timeouts are tested.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <string.h>
#include <unistd.h>

typedef int resolver(const char *, const char *, const struct addrinfo *, struct addrinfo **);

int getaddrinfo(const char *restrict node, const char *restrict service, const struct addrinfo *restrict hints,
                struct addrinfo **restrict result) {
    const char *suffix = node ? strrchr(node, '.') : NULL;
    if (suffix && strcmp(suffix, ".silent") == 0) {
        sleep(3600);
        return EAI_AGAIN;
    }
    resolver *real = (resolver *)dlsym(RTLD_NEXT, "getaddrinfo");
    return real(node, service, hints, result);
}
