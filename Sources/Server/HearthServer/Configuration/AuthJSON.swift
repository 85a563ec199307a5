// The file of `--auth-config`: how a production server sends codes, and which identity providers it accepts.
//
//     {"actionUrl": "https://app.example.com/action",
//      "mail": {"command": ["/usr/sbin/sendmail", "-t"], "from": "noreply@example.com"},
//      "textMessages": {"webhook": "https://sms.example.com/send"},
//      "providers": {"google.com": {"issuer": "https://accounts.google.com", "audiences": ["…"],
//        "keys": "https://www.googleapis.com/oauth2/v3/certs"}},
//      "databaseSecrets": ["…"]}

import IdentityEndpoints
import JSON
import RealtimeEndpoints

/// The settings of authentication in production.
struct AuthJSON: Sendable {
  var actionURL: String?
  var mail: ConfiguredDelivery.MailCommand?
  var textMessageURL: String?
  var providers: [String: OpenIDProviders.Provider] = [:]
  /// The secrets that give the rights of an administrator in the Realtime Database.
  var databaseSecrets: [String] = []

  init() {}

  /// Parses a file.
  /// - Parameter path: the name of the file, for messages.
  init(_ bytes: [UInt8], path: String) throws(HearthError) {
    _ = try LocatedJSON.parse(bytes, path: path)
    let json: JSONValue
    do {
      json = try JSONValue(
        json: FirebaseJSON.withoutComments(bytes), limits: JSONLimits(depth: 16, bytes: 1 << 20))
    } catch {
      throw HearthError("\(path) is not valid JSON: \(error)")
    }
    let root = try Self.object(
      json, "the file", path,
      ["actionUrl", "mail", "textMessages", "providers", "databaseSecrets"])
    if let value = root["actionUrl"] { actionURL = try Self.url(value, "actionUrl", path) }
    if let value = root["mail"] {
      let object = try Self.object(value, "mail", path, ["command", "from"])
      let arguments = object["command"]?.array?.compactMap(\.string) ?? []
      guard let program = arguments.first, program.hasPrefix("/"),
        arguments.count == object["command"]?.array?.count
      else {
        throw HearthError(
          "\(path): mail.command must be an array of texts that begins with the path of a program.")
      }
      mail = ConfiguredDelivery.MailCommand(
        arguments: arguments, from: try Self.text(object["from"], "mail.from", path))
    }
    if let value = root["textMessages"] {
      let object = try Self.object(value, "textMessages", path, ["webhook"])
      textMessageURL = try Self.url(object["webhook"] ?? .null, "textMessages.webhook", path)
    }
    if let value = root["databaseSecrets"] {
      databaseSecrets = value.array?.compactMap(\.string) ?? []
      guard databaseSecrets.count == value.array?.count,
        databaseSecrets.allSatisfy({ $0.utf8.count >= DatabaseSecrets.minimumBytes })
      else {
        throw HearthError(
          "\(path): databaseSecrets must be an array of texts of at least \(DatabaseSecrets.minimumBytes) bytes."
        )
      }
    }
    if let value = root["providers"] {
      guard let list = value.object else { throw HearthError("\(path): providers must be an object.") }
      for member in list.members {
        providers[member.key] = try Self.provider(member.value, "providers.\(member.key)", path)
      }
    }
  }

  private static func provider(
    _ value: JSONValue, _ name: String, _ path: String
  ) throws(HearthError) -> OpenIDProviders.Provider {
    let object = try object(value, name, path, ["issuer", "audiences", "keys"])
    let audiences = object["audiences"]?.array?.compactMap(\.string) ?? []
    guard !audiences.isEmpty, audiences.count == object["audiences"]?.array?.count else {
      throw HearthError("\(path): \(name).audiences must be an array of client IDs.")
    }
    return OpenIDProviders.Provider(
      issuer: try text(object["issuer"], name + ".issuer", path), audiences: audiences,
      keysURL: try url(object["keys"] ?? .null, name + ".keys", path))
  }

  private static func object(
    _ value: JSONValue, _ name: String, _ path: String, _ members: Set<String>
  ) throws(HearthError) -> JSONObject {
    guard let object = value.object else { throw HearthError("\(path): \(name) must be an object.") }
    for member in object.members where !members.contains(member.key) {
      throw HearthError(
        "\(path): \(name) has no member '\(member.key)': it has \(members.sorted().joined(separator: ", ")).")
    }
    return object
  }

  private static func text(
    _ value: JSONValue?, _ name: String, _ path: String
  ) throws(HearthError) -> String {
    guard let text = value?.string, !text.isEmpty else {
      throw HearthError("\(path): \(name) must be a text.")
    }
    return text
  }

  private static func url(_ value: JSONValue, _ name: String, _ path: String) throws(HearthError) -> String {
    let text = try text(value, name, path)
    guard text.hasPrefix("https://") || text.hasPrefix("http://") else {
      throw HearthError("\(path): \(name) must be an http or https URL.")
    }
    return text
  }
}
