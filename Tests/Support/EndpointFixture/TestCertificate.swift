// The test certificate: a self-signed certificate for localhost, used only in tests.

import Foundation
import NIOSSL

enum TestCertificate {
  /// Writes the certificate and the key into a new directory and returns their paths.
  static func write() throws -> (certificate: String, key: String) {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent(
      "hearth-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    let certificate = directory.appendingPathComponent("certificate.pem")
    let key = directory.appendingPathComponent("key.pem")
    try Data(certificatePEM.utf8).write(to: certificate)
    try Data(keyPEM.utf8).write(to: key)
    return (certificate.path, key.path)
  }

  /// Returns a client context that trusts the certificate and offers the given protocols.
  static func clientContext(protocols: [String]) throws -> NIOSSLContext {
    var configuration = TLSConfiguration.makeClientConfiguration()
    configuration.trustRoots = .certificates(try NIOSSLCertificate.fromPEMBytes(Array(certificatePEM.utf8)))
    configuration.applicationProtocols = protocols
    return try NIOSSLContext(configuration: configuration)
  }

  private static let certificatePEM = """
    -----BEGIN CERTIFICATE-----
    MIIBmzCCAUGgAwIBAgIUY7moHOd9lGoxax01HjXsePLAPXAwCgYIKoZIzj0EAwIw
    FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMTEzNTUyOVoYDzIxMjYxMDI4
    MTM1NTI5WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
    PQMBBwNCAAQ+mhm6v/alCE/0FIzKMPDNRkgmKsNSlyA7de+bdFgHqMDuOUsHcOPf
    A1VZg1G0UBJiESUy/HyeaR4gwZKdrYxlo28wbTAdBgNVHQ4EFgQU75YY868vbsBI
    L4W/BucgNgzs/6QwHwYDVR0jBBgwFoAU75YY868vbsBIL4W/BucgNgzs/6QwDwYD
    VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI
    zj0EAwIDSAAwRQIhAN1ffMr51ULtjwF1+dVheSRRExP6xJ7ugtAl9fvH+zKrAiAv
    DfcoRMtACANMuZImTRMQWdoTro2tDTkpdycTsT0yMQ==
    -----END CERTIFICATE-----
    """

  private static let keyPEM = """
    -----BEGIN PRIVATE KEY-----
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg7/Tv2C7yNSdumYTn
    hv5UFWY8nEyG7A4/D+4RtA4uChChRANCAAQ+mhm6v/alCE/0FIzKMPDNRkgmKsNS
    lyA7de+bdFgHqMDuOUsHcOPfA1VZg1G0UBJiESUy/HyeaR4gwZKdrYxl
    -----END PRIVATE KEY-----
    """
}
