// libcrypto is already loaded by libcurl. Used for SHA-256 of bodies and keys, and MD5 of SDWebImage's file names.
#pragma once
#include <openssl/evp.h>
#include <openssl/md5.h>
#include <openssl/sha.h>
