#pragma once
#include <hiredis/hiredis.h>

/* hiredis supports TLS since 1.0; 0.14 of Debian 12 lacks this header. Package.swift checks for the same file. */
#if __has_include(<hiredis/hiredis_ssl.h>)
#include <arpa/inet.h>
#include <errno.h>
#include <hiredis/hiredis_ssl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

enum {
    CHIREDIS_TLS_OK = 0,
    /* A file is unusable. */
    CHIREDIS_TLS_SETTINGS = 1,
    /* The server's certificate is not trusted. */
    CHIREDIS_TLS_UNTRUSTED = 2,
    /* The handshake failed. */
    CHIREDIS_TLS_FAILED = 3,
};

static inline int chiredis_tls_settings(const char *what, const char *file, char *why, size_t size) {
    unsigned long code = ERR_peek_last_error();
    const char *text = code ? ERR_reason_error_string(code) : NULL;
    snprintf(why, size, "%s %s%s%s", what, file ? file : "", text ? ": " : "", text ? text : "");
    return CHIREDIS_TLS_SETTINGS;
}

/* Starts TLS on a connected context. redisInitiateSSLWithContext of hiredis verifies the chain but not the name, so that any
   certificate of the authority would be valid for any server. `name` is a host name or an address. */
static inline int chiredis_start_tls(redisContext *context, const char *ca, const char *certificate, const char *key,
                                     const char *name, char *why, size_t size) {
    ERR_clear_error();
    SSL_CTX *settings = SSL_CTX_new(TLS_client_method());
    if (!settings) return chiredis_tls_settings("no context", NULL, why, size);
    SSL_CTX_set_min_proto_version(settings, TLS1_2_VERSION);
    SSL_CTX_set_verify(settings, SSL_VERIFY_PEER, NULL);
    int status = CHIREDIS_TLS_OK;
    if (ca ? !SSL_CTX_load_verify_locations(settings, ca, NULL) : !SSL_CTX_set_default_verify_paths(settings))
        status = chiredis_tls_settings("cannot use the authorities in", ca, why, size);
    else if (certificate && SSL_CTX_use_certificate_chain_file(settings, certificate) != 1)
        status = chiredis_tls_settings("cannot use the certificate in", certificate, why, size);
    else if (key && SSL_CTX_use_PrivateKey_file(settings, key, SSL_FILETYPE_PEM) != 1)
        status = chiredis_tls_settings("cannot use the key in", key, why, size);
    SSL *ssl = status == CHIREDIS_TLS_OK ? SSL_new(settings) : NULL;
    SSL_CTX_free(settings);
    if (status != CHIREDIS_TLS_OK) return status;
    if (!ssl) return chiredis_tls_settings("no connection", NULL, why, size);
    unsigned char address[16];
    if (inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1) {
        status = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name);
    } else {
        SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
        status = SSL_set1_host(ssl, name) && SSL_set_tlsext_host_name(ssl, name);
    }
    if (!status) {
        SSL_free(ssl);
        return chiredis_tls_settings("no server can have the name", name, why, size);
    }
    if (redisInitiateSSL(context, ssl) == REDIS_OK) return CHIREDIS_TLS_OK;
    long verdict = SSL_get_verify_result(ssl);
    snprintf(why, size, "%s", verdict == X509_V_OK ? context->errstr : X509_verify_cert_error_string(verdict));
    SSL_free(ssl);
    return verdict == X509_V_OK ? CHIREDIS_TLS_FAILED : CHIREDIS_TLS_UNTRUSTED;
}
#endif
