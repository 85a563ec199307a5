// Sends an administrator's requests about rules to a running server, for the command `hearth rules`.

import Foundation
import Identity
import IdentityEndpoints
import JSON
import NIOHTTP1
import NIOPosix

/// The access of an administrator to a running server.
package struct RulesClient: Sendable {
  private static let timeoutSeconds: Int64 = 60

  /// The project of the service account; nil without its file.
  package let project: String?
  private let server: String
  private let account: ServiceAccountFile?
  /// The response with the list of rulesets of a Realtime Database contains their sources: 64 of at most 1 MiB each,
  /// escaped.
  private let outbound = OutboundHTTP(
    group: MultiThreadedEventLoopGroup.singleton, maximumBytes: 128 << 20)

  /// Makes the access to a server.
  /// - Parameters:
  ///   - server: the address of the product's port, such as `http://127.0.0.1:8080`.
  ///   - credentials: the path of a service account's JSON file; nil for an emulator.
  /// - Throws: ``HearthError`` for a file that cannot be read.
  package init(server: String, credentials: String?) throws(HearthError) {
    self.server = server.hasSuffix("/") ? String(server.dropLast()) : server
    guard let credentials else {
      account = nil
      project = nil
      return
    }
    let bytes: [UInt8]?
    do { bytes = try ConfigurationFile.read(credentials) } catch {
      throw HearthError("The file \(credentials) cannot be read: \(error)")
    }
    guard let bytes else { throw HearthError("The file \(credentials) does not exist.") }
    guard let account = try? ServiceAccountFile(bytes) else {
      throw HearthError(
        "The file \(credentials) is not one of a service account. 'hearth credentials create' makes one.")
    }
    self.account = account
    project = account.project
  }

  /// Sends a request.
  /// - Parameter path: the path with its query, percent-encoded.
  /// - Returns: the JSON of the response.
  /// - Throws: ``HearthError`` with the server's message unless the status is 200.
  func send(_ method: HTTPMethod, _ path: String, body: [UInt8]? = nil) async throws(HearthError)
    -> JSONObject
  {
    let (status, json) = try await response(method, path, body: body)
    guard status == 200 else {
      throw HearthError(Self.message(json) ?? "The server answered \(status).")
    }
    return json
  }

  /// Sends a request.
  /// - Returns: the status and the JSON of the response.
  /// - Throws: ``HearthError`` if the server does not respond.
  func response(
    _ method: HTTPMethod, _ path: String, body: [UInt8]?
  ) async throws(HearthError) -> (status: Int, json: JSONObject) {
    let response: OutboundHTTP.Response
    do {
      let token = try account?.token(at: Int64(Date().timeIntervalSince1970)) ?? "owner"
      response = try await outbound.send(
        method, to: server + path, body: body, token: token, seconds: Self.timeoutSeconds)
    } catch { throw HearthError("The server at \(server) cannot be reached: \(error)") }
    return (response.status, (try? JSONValue(json: response.body))?.object ?? [:])
  }

  /// The message of an error response, of either product.
  static func message(_ json: JSONObject) -> String? {
    json["error"]?["message"]?.string ?? json["error"]?.string
  }

  /// Encodes one segment of a path.
  static func encode(_ segment: String) -> String {
    let letters = CharacterSet(
      charactersIn: "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~")
    return segment.addingPercentEncoding(withAllowedCharacters: letters) ?? segment
  }
}

/// A release or a ruleset as `hearth rules history` lists it.
package struct RulesHistoryEntry: Sendable, Hashable {
  /// The ID of the ruleset.
  package var ruleset: String
  /// The time of the release; for the Realtime Database the time at which the ruleset was stored.
  package var time: String
  /// Remarks: `in force`, `canary` or `deleted`.
  package var remarks: [String]
}

/// The rules of one database on a running server.
package protocol RemoteRules: Sendable {
  /// Checks rules on the server without storing them.
  /// - Returns: warnings.
  /// - Throws: ``HearthError`` with all errors.
  func check(_ source: [UInt8], file: String) async throws(HearthError) -> [String]
  /// Stores rules as a ruleset and puts it in force.
  /// - Returns: the ID of the ruleset.
  func deploy(_ source: [UInt8], file: String) async throws(HearthError) -> String
  /// The releases, newest first.
  func history() async throws(HearthError) -> [RulesHistoryEntry]
  /// Puts a stored ruleset in force.
  func release(_ ruleset: String) async throws(HearthError)
}

extension RemoteRules {
  /// Puts in force the ruleset that was in force, or stored, before the current one.
  /// - Returns: the ID of the ruleset.
  /// - Throws: ``HearthError`` if there is no such ruleset.
  package func rollBack() async throws(HearthError) -> String {
    let entries = try await history().filter { !$0.remarks.contains("deleted") }
    let current = entries.firstIndex { $0.remarks.contains("in force") }
    let older = current.map { index in
      entries[(index + 1)...].first { $0.ruleset != entries[index].ruleset }
    }
    guard let target = older ?? entries.first else {
      throw HearthError("There is no earlier ruleset to return to.")
    }
    try await release(target.ruleset)
    return target.ruleset
  }
}
