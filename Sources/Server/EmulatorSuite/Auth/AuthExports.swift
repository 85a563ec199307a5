// Exports and imports the accounts of an emulator's project, in the form of the emulator suite:
//
//     auth_export/accounts.json             {"kind": …, "users": […]}: the accounts of the project
//     auth_export/accounts-<tenant>.json    the accounts of each tenant with accounts
//     auth_export/config.json               {"signIn": …, "emailPrivacyConfig": …}
//
// The accounts of one file are held in memory: the format is one JSON object.

import FirestoreModel
import Identity
package import IdentityEndpoints
import JSON
import Logging

/// Exports and imports the accounts of a project.
package struct AuthExports: Sendable {
  /// Maximum bytes of a file that is imported.
  private static let maximumBytes = 256 << 20
  private static let configurationFile = "config.json"
  private static let accountsPrefix = "accounts"
  private static let suffix = ".json"
  /// Maximum accounts that one transaction imports.
  private static let batchSize = 1000

  private let service: IdentityService

  /// Creates the exports of the service's default project.
  package init(_ service: IdentityService) { self.service = service }

  private var project: String { service.services.defaultProject }

  /// Writes the files to a directory.
  func export(to directory: String) async throws(FirestoreError) {
    do {
      let database = try await service.services.store.project(project)
      let (settings, tenants) = try await database.read { reader in
        (try reader.projectSettings(), try reader.tenants(after: nil, limit: .max).map(\.id))
      }
      try await write(AuthEmulator.configuration(settings), to: "\(directory)/\(Self.configurationFile)")
      for tenant in [nil] + tenants.map(Optional.some) {
        let users = try await database.read { reader in
          try reader.accounts(after: nil, limit: .max, in: tenant)
            .map { JSONValue.object($0.userInfo(for: .administrator, password: .stored)) }
        }
        if tenant != nil, users.isEmpty { continue }
        let name = tenant.map { "\(Self.accountsPrefix)-\($0)" } ?? Self.accountsPrefix
        try await write(
          ["kind": .string("identitytoolkit#DownloadAccountResponse"), "users": .array(users)],
          to: "\(directory)/\(name)\(Self.suffix)")
      }
    } catch {
      throw Self.error(error, "The accounts cannot be exported")
    }
  }

  private func write(_ object: JSONObject, to path: String) async throws(FirestoreError) {
    let bytes = JSONValue.object(object).json()
    try await ExportFiles.blocking(.internalError) { try ExportFiles.write(bytes, to: path) }
  }

  /// Imports the files of a directory. Accounts with the same ID are replaced.
  func importAccounts(_ directory: String, in source: ExportSource, log: Logger) async throws(FirestoreError)
  {
    let files = try await ExportFiles.blocking(.invalidArgument) {
      let real = try source.path(directory, in: source.root)
      guard ExportFiles.isDirectory(real) else {
        throw FirestoreError.invalidArgument("\(real) is not a directory.")
      }
      return try ExportFiles.names(in: real)
        .filter { $0.hasSuffix(Self.suffix) }
        .map { (name: String($0.dropLast(Self.suffix.count)), path: try source.path($0, in: real)) }
    }
    for (name, path) in files {
      do {
        if name + Self.suffix == Self.configurationFile {
          try await importConfiguration(try await read(path))
        } else if name == Self.accountsPrefix {
          try await importUsers(try await read(path), tenant: nil, path, log)
        } else if name.hasPrefix(Self.accountsPrefix + "-") {
          let tenant = String(name.dropFirst(Self.accountsPrefix.count + 1))
          try await importUsers(try await read(path), tenant: tenant, path, log)
        }
      } catch {
        throw Self.error(error, "\(path) cannot be imported")
      }
    }
  }

  private func read(_ path: String) async throws(FirestoreError) -> JSONObject {
    let bytes = try await ExportFiles.blocking(.invalidArgument) {
      try ExportFiles.read(path, atMost: Self.maximumBytes)
    }
    guard let object = (try? JSONValue(json: bytes))?.object else {
      throw .invalidArgument("\(path) does not hold a JSON object.")
    }
    return object
  }

  private func importConfiguration(_ object: JSONObject) async throws {
    let database = try await service.services.store.project(project)
    try await database.write { transaction in
      var settings = try transaction.reader.projectSettings()
      settings.allowsDuplicateEmails = object["signIn"]?["allowDuplicateEmails"]?.bool ?? false
      settings.hidesAccounts = object["emailPrivacyConfig"]?["enableImprovedEmailPrivacy"]?.bool
      try transaction.put(settings)
    }
  }

  private func importUsers(
    _ object: JSONObject, tenant: String?, _ path: String, _ log: Logger
  ) async throws {
    var rest = (object["users"]?.array ?? [])[...]
    while !rest.isEmpty {
      let batch = Array(rest.prefix(Self.batchSize))
      rest = rest.dropFirst(Self.batchSize)
      let response = try await service.importAccounts(batch, project: project, tenant: tenant)
      for error in response["error"]?.array ?? [] {
        log.warning(
          "an account of the import is left out",
          metadata: ["file": "\(path)", "reason": "\(error["message"]?.string ?? "")"])
      }
    }
  }

  private static func error(_ error: any Error, _ problem: String) -> FirestoreError {
    if let error = error as? FirestoreError { return error }
    return .invalidArgument("\(problem): \(error)")
  }
}
