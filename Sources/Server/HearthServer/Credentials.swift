// Manages the service accounts of a data directory: directly if no server has it open, otherwise through the server.

import Access
import EmbeddedStore
import Foundation
import Identity
import IdentityEndpoints
import JSON
import NIOHTTP1
import NIOPosix
import OrderedStore

/// The service accounts of a data directory.
public struct Credentials: Sendable {
  /// The rights of a service account.
  public enum Role: String, Sendable, CaseIterable {
    /// Reads all data.
    case reader
    /// Reads and writes all data.
    case writer
    /// Reads and writes all data, manages users, and signs custom tokens.
    case administrator
  }

  /// One service account.
  public struct Entry: Sendable, Equatable {
    /// The account's address.
    public var email: String
    /// The project in which the account has rights.
    public var project: String
    /// The name of its role.
    public var role: String
    /// The IDs of its keys.
    public var keys: [String]
  }

  private let directory: String

  /// Manages the service accounts of a data directory.
  public init(directory: String) { self.directory = directory }

  /// Creates a key, and its account unless it exists.
  /// - Parameters:
  ///   - name: the account's name: 1 to 63 lower-case letters, digits and hyphens.
  ///   - tokenURI: the address of the server's token endpoint, as clients reach it.
  /// - Returns: the service-account file, as Google's auth libraries read it. It contains the private key.
  /// - Throws: ``HearthError`` with advice.
  public func create(
    name: String, project: String, role: Role, tokenURI: String
  ) async throws(HearthError) -> [UInt8] {
    let request: JSONObject = [
      "name": .string(name), "project": .string(project), "role": .string(role.rawValue),
      "tokenUri": .string(tokenURI),
    ]
    let file = try await run(.POST, "/credentials", request) { store, accounts in
      _ = try await store.project(project)
      return try await accounts.create(
        name: name, project: project, role: ServiceRole(rawValue: role.rawValue) ?? .reader,
        tokenURI: tokenURI)
    }
    return JSONValue.object(file).json(pretty: true) + [0x0A]
  }

  /// Lists the service accounts.
  /// - Throws: ``HearthError`` with advice.
  public func list() async throws(HearthError) -> [Entry] {
    let response = try await run(.GET, "/credentials", nil) { _, accounts in accounts.json }
    return (response["credentials"]?.array ?? []).map { entry in
      Entry(
        email: entry["email"]?.string ?? "", project: entry["project"]?.string ?? "",
        role: entry["role"]?.string ?? "",
        keys: (entry["keys"]?.array ?? []).compactMap { $0["id"]?.string })
    }
  }

  /// Revokes an account, or one of its keys. Tokens of the key are rejected immediately.
  /// - Parameter keyID: the key; nil for the account with all of its keys.
  /// - Throws: ``HearthError`` with advice.
  public func revoke(email: String, keyID: String?) async throws(HearthError) {
    var request: JSONObject = ["email": .string(email)]
    if let keyID { request["keyId"] = .string(keyID) }
    _ = try await run(.POST, "/credentials:revoke", request) { _, accounts in
      try await accounts.revoke(email: email, keyID: keyID)
      return [:]
    }
  }

  private func run(
    _ method: HTTPMethod, _ path: String, _ body: JSONObject?,
    _ work: (IdentityStore, ServiceAccounts) async throws -> JSONObject
  ) async throws(HearthError) -> JSONObject {
    guard FileManager.default.fileExists(atPath: directory + "/CURRENT") else {
      throw HearthError("\(directory) is not a data directory of Hearth. Start a server with it first.")
    }
    do {
      let store = try await EmbeddedStore.open(directory: directory)
      do {
        let identity = IdentityStore(store)
        let result = try await work(identity, try await ServiceAccounts.open(identity))
        try await store.close()
        return result
      } catch {
        try? await store.close()
        throw error
      }
    } catch let error as StoreError where error.code == .locked {
      return try await request(method, path, body)
    } catch let error as IdentityError {
      throw HearthError(error.message)
    } catch {
      throw HearthError("\(directory) cannot be opened: \(error)")
    }
  }

  /// Sends a request to the server that has the directory open.
  private func request(
    _ method: HTTPMethod, _ path: String, _ body: JSONObject?
  ) async throws(HearthError) -> JSONObject {
    let response: OutboundHTTP.Response
    do {
      response = try await OutboundHTTP(group: MultiThreadedEventLoopGroup.singleton).send(
        method, path: path, body: body.map { JSONValue.object($0).json() },
        socket: IdentityAssembly.socketPath(inDirectory: directory), seconds: 30)
    } catch {
      throw HearthError(
        "\(directory) is in use, and its server cannot be reached: \(error). An emulator has no credentials.")
    }
    let json = (try? JSONValue(json: response.body))?.object ?? [:]
    guard response.status == 200 else {
      throw HearthError(json["error"]?["message"]?.string ?? "The server answered \(response.status).")
    }
    return json
  }
}
