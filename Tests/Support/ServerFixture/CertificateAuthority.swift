// A certificate authority for one test. It signs server certificates. Only clients that are given its
// certificate trust them. Each test creates an authority with the `openssl` command, so that the repository
// contains no keys and no certificates that expire.

import Foundation

/// An authority that signs certificates for the servers of one test.
package struct CertificateAuthority {
  /// The files of a server, as PEM.
  package struct Files: Sendable {
    /// The certificate, followed by that of its authority.
    package let certificate: String
    /// The private key.
    package let key: String
  }

  /// The reason that a certificate could not be created.
  package struct Failure: Error, CustomStringConvertible {
    package let description: String
  }

  private let directory: URL

  /// The authority's own certificate as PEM, which clients must trust.
  package var certificateFile: String { directory.appendingPathComponent("authority.pem").path }

  /// Makes an authority with a new key, valid for a day.
  package init() throws {
    directory = FileManager.default.temporaryDirectory.appendingPathComponent(
      "authority-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    try run([
      "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1",
      "-subj",
      "/CN=Authority of a test", "-keyout", "authority.key", "-out", "authority.pem", "-addext",
      "keyUsage=critical,keyCertSign",
    ])
  }

  /// Signs a certificate for a server.
  ///
  /// - Parameters:
  ///   - names: the host names of the certificate.
  ///   - addresses: the IP addresses of the certificate.
  package func issue(
    names: [String] = ["localhost"], addresses: [String] = ["127.0.0.1"]
  ) throws -> Files {
    let id = UUID().uuidString
    let alternatives = names.map { "DNS:\($0)" } + addresses.map { "IP:\($0)" }
    try Data("subjectAltName=\(alternatives.joined(separator: ","))\n".utf8)
      .write(to: directory.appendingPathComponent("\(id).ext"))
    try run([
      "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj",
      "/CN=Server of a test",
      "-keyout", "\(id).key", "-out", "\(id).csr",
    ])
    try run([
      "x509", "-req", "-days", "1", "-in", "\(id).csr", "-CA", "authority.pem", "-CAkey", "authority.key",
      "-CAcreateserial", "-extfile", "\(id).ext", "-out", "\(id).pem",
    ])
    let chain = directory.appendingPathComponent("\(id).pem")
    let serverCertificate = try Data(contentsOf: chain)
    try (serverCertificate + Data(contentsOf: URL(fileURLWithPath: certificateFile))).write(to: chain)
    return Files(certificate: chain.path, key: directory.appendingPathComponent("\(id).key").path)
  }

  /// Removes the files.
  package func remove() {
    try? FileManager.default.removeItem(at: directory)
  }

  private func run(_ arguments: [String]) throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["openssl"] + arguments
    process.currentDirectoryURL = directory
    let errors = Pipe()
    process.standardError = errors
    process.standardOutput = FileHandle.nullDevice
    try process.run()
    let text = errors.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
      throw Failure(description: "openssl \(arguments.first ?? ""): \(String(decoding: text, as: UTF8.self))")
    }
  }
}
