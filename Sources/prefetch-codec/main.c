// `prefetch-codec`: decodes, resizes and encodes images for the program that has started it, on the socket that is its standard input. It has no
// options, reads no file once it has its libraries, and is of no use by hand.
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "codec_child.h"

int main(void) {
    int kind = 0;
    socklen_t length = sizeof kind;
    if (getsockopt(STDIN_FILENO, SOL_SOCKET, SO_TYPE, &kind, &length) != 0 || kind != SOCK_SEQPACKET) {
        fputs("error: prefetch-codec is started by prefetch-worker and prefetch-coord\n", stderr);
        return 64;
    }
    return codec_child_run(STDIN_FILENO, NULL);
}
