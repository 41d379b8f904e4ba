// libcrypto is already loaded by libcurl. Used for SHA-256 of bodies and keys, and MD5 of SDWebImage's file names.
#pragma once
// SHA256_Init(3) is deprecated since OpenSSL 3.0 in favour of EVP_Digest(3), which allocates for every digest: the key of an image takes 80 ns
// this way, and 290 that way.
#define OPENSSL_API_COMPAT 0x10100000L
#include <openssl/evp.h>
#include <openssl/md5.h>
#include <openssl/sha.h>
