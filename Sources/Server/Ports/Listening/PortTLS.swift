// Reads the certificate and private key of a port from PEM files, and makes the TLS context of its connections.

import NIOCore
import NIOSSL

/// The TLS configuration of a port: TLS 1.2 or later. A port that serves HTTP/2 offers it by ALPN.
package struct PortTLS: Sendable {
  /// The maximum wait for the peer's close alert when a connection closes. Many peers never send it.
  private static let closeTimeout = TimeAmount.seconds(1)

  private let configuration: TLSConfiguration

  /// Reads a certificate chain and its private key.
  /// - Throws: ``PortError`` with the name of the unusable file.
  package init(certificateFile: String, keyFile: String) throws(PortError) {
    let chain: [NIOSSLCertificate]
    do {
      chain = try NIOSSLCertificate.fromPEMFile(certificateFile)
    } catch {
      throw PortError(.tls, "The certificate file \(certificateFile) cannot be read as PEM: \(error)")
    }
    do {
      let key = try NIOSSLPrivateKey(file: keyFile, format: .pem)
      var configuration = TLSConfiguration.makeServerConfiguration(
        certificateChain: chain.map { .certificate($0) }, privateKey: .privateKey(key))
      configuration.minimumTLSVersion = .tlsv12
      configuration.shutdownTimeout = Self.closeTimeout
      self.configuration = configuration
    } catch {
      throw PortError(.tls, "The key file \(keyFile) cannot be read as PEM: \(error)")
    }
  }

  /// Makes the context that all connections share.
  /// - Parameter http2: whether ALPN offers HTTP/2.
  func context(http2: Bool) throws(PortError) -> NIOSSLContext {
    var configuration = configuration
    configuration.applicationProtocols = http2 ? ["h2", "http/1.1"] : ["http/1.1"]
    do {
      return try NIOSSLContext(configuration: configuration)
    } catch {
      throw PortError(.tls, "The TLS certificate and key do not fit each other: \(error)")
    }
  }
}
