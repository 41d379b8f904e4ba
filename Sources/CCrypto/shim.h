// libcrypto is in the process already (libcurl brings it): SHA-256 of bodies and keys, MD5 of SDWebImage's file names.
#pragma once
#include <openssl/evp.h>
#include <openssl/md5.h>
#include <openssl/sha.h>
