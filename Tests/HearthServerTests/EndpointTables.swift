// The requests that a production server serves, generated from the tables of its routers, so that a new operation cannot be
// forgotten.

import Access
import FirestoreModel
import JSON
import OrderedStore

@testable import FirestoreEndpoints
@testable import FirestoreEngine
@testable import IdentityEndpoints
@testable import RealtimeEngine

/// An operation of the auth port, with bodies that name the stored account in every member.
struct IdentityEndpointCase {
  var method: String
  var path: String
  /// The bodies to send. One body has all members. Operations of users have more bodies: for each member, a body
  /// without this member; and a body without all members that this server does not implement or accept from users. The
  /// first checks of an operation reject such members, so a body with them does not reach the later checks.
  var bodies: [String]
  /// Whether the operation needs an administrator.
  var isPrivileged: Bool

  /// All operations. Operations of a project also occur as operations of a tenant.
  static var all: [IdentityEndpointCase] {
    let tables: [(prefix: String, table: IdentityOperation.Table)] = [
      ("/identitytoolkit.googleapis.com/v1/", IdentityOperation.version1),
      ("/identitytoolkit.googleapis.com/v2/", IdentityOperation.version2),
      ("/www.googleapis.com/identitytoolkit/v3/relyingparty/", IdentityOperation.version3),
      ("/securetoken.googleapis.com/v1/", IdentityOperation.secureToken),
    ]
    return tables.flatMap { prefix, table in
      table.flatMap { pattern, operations in
        operations.flatMap { method, operation in
          paths(of: pattern).map { path in
            IdentityEndpointCase(
              method: method, path: prefix + path,
              bodies: bodies(of: operation.fields, isPrivileged: operation.isPrivileged),
              isPrivileged: operation.isPrivileged)
          }
        }
      }
    }
  }

  private static func paths(of pattern: String) -> [String] {
    let pattern = pattern.replacing("*", with: "t1")
    guard pattern.hasPrefix("projects"), pattern != "projects" else { return [pattern] }
    let rest = pattern.dropFirst("projects".count)
    let project = "projects/my-app" + rest
    return rest.hasPrefix("/tenants") || rest == "/config"
      ? [project] : [project, "projects/my-app/tenants/t1" + rest]
  }

  /// The members that end an operation of a user at its first checks.
  private static let rejected: Set<String> = [
    "pendingIdToken", "returnRefreshToken", "localId", "returnOobLink", "providerId", "customAttributes",
  ]

  private static func bodies(of fields: [String: FieldKind], isPrivileged: Bool) -> [String] {
    // With an invalid ID token or an unknown tenant an operation would end before its other checks.
    let names = fields.filter { !["idToken", "tenantId", "targetProjectId"].contains($0.key) }
    guard !isPrivileged else { return [text(names)] }
    let partial = names.keys.map { omitted in text(names.filter { $0.key != omitted }) }
    return Set(partial + [text(names), text(names.filter { !rejected.contains($0.key) })]).sorted()
  }

  private static func text(_ fields: [String: FieldKind]) -> String {
    JSONValue.object(object(fields)).text
  }

  private static func object(_ fields: [String: FieldKind]) -> JSONObject {
    var object = JSONObject()
    for (name, kind) in fields.sorted(by: { $0.key < $1.key }) { object[name] = value(name, kind) }
    return object
  }

  private static func value(_ name: String, _ kind: FieldKind) -> JSONValue {
    switch kind {
    case .string: .string(texts[name] ?? "x")
    case .bool: .bool(true)
    case .int: .int(1)
    case .decimal: .string("1")
    case .enumeration(let words): .string(words.first { $0 == "PASSWORD_RESET" } ?? words.last ?? "")
    case .list(let element): .array([value(name, element)])
    case .object(let fields): .object(object(fields))
    case .any: .object([:])
    }
  }

  private static let texts = [
    "localId": "u1", "localIds": "u1", "email": "vault@example.com", "oldEmail": "vault@example.com",
    "identifier": "vault@example.com", "password": "wrong-password", "phoneNumber": "+15555550100",
    "requestUri": "https://app.example/x", "continueUri": "https://app.example/x",
    "continueUrl": "https://app.example/x", "grantType": "refresh_token",
    "postBody": "id_token=e30.e30.&providerId=google.com",
  ]
}

/// The names of the methods and settings of the databases' ports.
enum DatabaseEndpointNames {
  /// The verbs of Cloud Firestore's REST paths.
  static var verbs: [String] {
    FirestoreRESTMethod.ofDatabase.keys.sorted() + FirestoreRESTMethod.ofParent.keys.sorted()
  }

  /// The gRPC methods of Cloud Firestore.
  static func methods() throws -> Set<String> {
    let engine = FirestoreEngine(
      store: try MemoryStore(), policy: OpenPolicy(), options: .init(createsDatabases: true))
    let service = FirestoreService(engine: engine, authentication: .emulator)
    return Set(service.methods.methods.keys.compactMap { $0.split(separator: "/").last.map(String.init) })
  }

  /// The settings of a Realtime Database.
  static var settings: [String] { Setting.allCases.map(\.rawValue) }
}

extension JSONValue {
  fileprivate var text: String { String(decoding: json(), as: UTF8.self) }
}
