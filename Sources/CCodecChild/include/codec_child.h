// The child that decodes for a program: it locks itself in, then answers calls (codec_protocol.h). Called by its `main` only.
#pragma once
#include "codec_protocol.h"

/// Takes a call's place, for the tests of what holds a child: true if it has answered it.
typedef bool codec_hook(int socket, const codec_call *call, const uint8_t *bytes, int body, int output);

/// Loads the libraries, locks this process in, and answers calls on `socket` until the program closes it. Returns an exit code.
int codec_child_run(int socket, codec_hook *hook);
/// Locks this process in for good, and says in `hello` what holds.
void codec_child_confine(codec_hello *hello);
/// Sends an answer; false if nobody takes it.
bool codec_child_answer(int socket, codec_answer *answer);
