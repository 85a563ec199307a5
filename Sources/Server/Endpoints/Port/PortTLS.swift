// A port's certificate and key, read from PEM files.

import NIOCore
import NIOSSL

/// The server side of TLS for a port: TLS 1.2 and above, HTTP/2 offered by ALPN where the port speaks it.
public struct PortTLS: Sendable {
  /// How long the peer's end of TLS is waited for once its connection is to be closed: many never say it.
  private static let farewell = TimeAmount.seconds(1)

  private let configuration: TLSConfiguration

  /// Reads a certificate chain and its private key.
  /// - Throws: ``PortError`` that names the file that cannot be used.
  public init(certificateFile: String, keyFile: String) throws(PortError) {
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
      configuration.shutdownTimeout = Self.farewell
      self.configuration = configuration
    } catch {
      throw PortError(.tls, "The key file \(keyFile) cannot be read as PEM: \(error)")
    }
  }

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
