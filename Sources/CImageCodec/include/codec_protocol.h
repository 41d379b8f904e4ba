// What a program and a child that decodes for it say to each other: one record of a fixed size in each direction for each call, over a socket that
// keeps records apart. Bytes go in through memory that the child cannot change: a window that both have mapped, a sealed file in memory, or the
// body's file, opened for reading. They come back in a file in memory whose size the program has fixed. The child is taken for an attacker: a
// program believes nothing of an answer that it has not checked, and reads the bytes behind it once.
#pragma once
#include <sys/types.h>

#include "image_codec.h"

enum {
    /// Of these records, and of all that they have in them.
    CODEC_VERSION = 3,
    /// Bytes of the window. Bodies that are longer are in a file, most of them.
    CODEC_WINDOW = 1 << 20,
    /// Of EXIF data and a profile.
    CODEC_METADATA = 16 << 20,
};

enum codec_operation {
    /// `image_codec_run`.
    CODEC_RUN = 1,
    /// An encoder of `image_codec.h`: the input is pixels, EXIF data, profile.
    CODEC_ENCODE = 2,
    /// `image_resample`: the input is pixels.
    CODEC_RESAMPLE = 3,
};

/// A call.
typedef struct {
    uint32_t version;
    /// A `codec_operation`.
    uint32_t operation;
    /// Repeated in the answer.
    uint64_t number;
    /// Bytes of input: in a descriptor that comes with the record, or in the window.
    uint64_t count;
    uint32_t has_body;
    /// Bytes that the answer may have besides its record, in a descriptor that comes with this one; 0: none, and no descriptor.
    uint64_t room;
    /// Of `CODEC_RUN`, without its bytes. Format and limits are those of all operations.
    image_codec_request request;
    /// The size that the image is known to have; 0: it is not known.
    uint32_t known_width, known_height;
    /// Of `CODEC_ENCODE`.
    uint32_t width, height, channels, quality;
    uint64_t exif, icc;
    /// Of `CODEC_RESAMPLE`.
    image_resample_request resample;
} codec_call;

/// An answer.
typedef struct {
    uint32_t version;
    /// An `image_codec_status`.
    uint32_t status;
    uint64_t number;
    uint64_t memory;
    uint32_t width, height;
    uint32_t orientation, frame_count, loop_count, has_alpha, color, warning_count;
    uint32_t pixel_width, pixel_height, channels, pixel_frames, rows;
    /// Lengths of what is in the descriptor for it, one after the other. An encoded or resampled image is in `pixels`.
    uint64_t pixels, durations, exif, icc;
    char message[IMAGE_CODEC_TEXT];
    char warnings[IMAGE_CODEC_WARNINGS][IMAGE_CODEC_TEXT];
} codec_answer;

/// What holds a child.
enum codec_layer {
    /// System calls are those of a list.
    CODEC_SECCOMP = 1,
    /// No file can be opened, whatever the list has.
    CODEC_LANDLOCK = 2,
    /// Descriptors, memory, core and file size, processor time.
    CODEC_LIMITS = 4,
};

/// What a child says first, before it has seen a byte of anybody.
typedef struct {
    uint32_t version;
    /// Of `codec_layer`.
    uint32_t layers;
    /// Errors of the layers that do not hold (errno(3)).
    int32_t seccomp_error, landlock_error, limits_error;
    /// Its mappings at rest: all, and those that are private and writable.
    uint64_t address_bytes, data_bytes;
} codec_hello;

/// The program's side of a child.
typedef struct {
    int socket;
    /// The child's end of the socket, until it is started; -1 afterwards.
    int child_socket;
    int window_file;
    uint8_t *window;
    /// Of the last call.
    uint64_t number;
    codec_hello hello;
    /// The limits as they were set last.
    uint64_t data_limit, address_limit;
} codec_link;

/// How a call ended.
enum codec_end {
    CODEC_ANSWERED = 0,
    /// The socket has ended: the child has died, or the program has shut the socket down.
    CODEC_GONE = 1,
    /// It has used more processor time than it was given.
    CODEC_LATE = 2,
    /// It sleeps, and computes nothing.
    CODEC_SILENT = 3,
    /// What it has answered cannot be the answer.
    CODEC_WRONG = 4,
    /// A call of this process has failed (errno).
    CODEC_FAILED = 5,
};

/// Makes a socket and a window. False, with errno, if that is not possible.
bool codec_link_make(codec_link *link);
void codec_link_close(codec_link *link);
/// Waits for the first words of a child that was started with `child_socket`, which is closed. A `codec_end`.
int codec_link_open(codec_link *link);
/// Sends a call with its input, and waits for the answer, whose every field is checked. A `codec_end`.
/// * `pid`: of the child, which has not been waited for (wait(2)).
/// * `body`: a file whose bytes these are; -1: none.
/// * `output`: of `codec_output`, for `call->room` bytes; -1: none.
/// * `nanoseconds`: of processor time that the child may take; what it took is in `spent`.
int codec_link_call(codec_link *link, pid_t pid, codec_call *call, const uint8_t *bytes, int body, int output,
                    uint64_t nanoseconds, codec_answer *answer, uint64_t *spent);
/// Processor time of a process so far; false if it cannot be told.
bool codec_processor_time(pid_t pid, uint64_t *nanoseconds);

/// Waits for the end of a child whose socket has ended, and for its status (wait(2)). False if it had to be killed: it had closed the socket.
bool codec_reap(pid_t pid, int *status);

/// A file in memory of so many bytes, whose size cannot be changed; -1 with errno. Not with a window of its own: it is read by pread(2).
int codec_output(uint64_t room);
/// A file in memory that cannot be changed; -1 with errno.
int codec_input(const uint8_t *bytes, uint64_t count);

/// Whether an answer can be one to a call. Texts are cut at their end, and made printable.
bool codec_answer_is_possible(const codec_call *call, codec_answer *answer);

static inline const char *codec_message(const codec_answer *answer) { return answer->message; }
static inline const char *codec_warning(const codec_answer *answer, int index) { return answer->warnings[index]; }
