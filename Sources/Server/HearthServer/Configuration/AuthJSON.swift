// The file of `--auth-config`: how a production server sends codes, which identity providers it accepts, and which other
// issuers name users of its databases.
//
//     {"actionUrl": "https://app.example.com/action",
//      "mail": {"relay": {"host": "smtp.example.com", "user": "hearth", "password": "…"}, "from": "noreply@example.com"},
//      "textMessages": {"webhook": "https://sms.example.com/send"},
//      "providers": {"google.com": {"issuer": "https://accounts.google.com", "audiences": ["…"],
//        "keys": "https://www.googleapis.com/oauth2/v3/certs"}},
//      "issuers": {"https://id.example.com": {"audiences": ["app"], "keys": "https://id.example.com/jwks"}},
//      "databaseSecrets": ["…"]}

import Foundation
import Identity
import IdentityEndpoints
import JSON
import RealtimeEndpoints

/// The settings of authentication in production.
struct AuthJSON: Sendable {
  var actionURL: String?
  var mail: ConfiguredDelivery.Mail?
  var textMessageURL: String?
  var providers: [String: OpenIDProviders.Provider] = [:]
  /// The issuers whose tokens the databases accept. An issuer with an empty project names users of the
  /// server's own project.
  var issuers: [TrustedIssuers.Issuer] = []
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
      ["actionUrl", "mail", "textMessages", "providers", "issuers", "databaseSecrets"])
    if let value = root["actionUrl"] { actionURL = try Self.url(value, "actionUrl", path) }
    if let value = root["mail"] { mail = try Self.mail(value, path) }
    // Without a configured page, the links would contain the host that a client named, and a user would send
    // the code to that host.
    guard mail == nil || actionURL != nil else {
      throw HearthError("\(path): mail needs actionUrl, the page that receives the links of e-mails.")
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
          "\(path): databaseSecrets must be an array of strings of at least \(DatabaseSecrets.minimumBytes) bytes."
        )
      }
    }
    if let value = root["providers"] {
      guard let list = value.object else { throw HearthError("\(path): providers must be an object.") }
      for member in list.members {
        providers[member.key] = try Self.provider(member.value, "providers.\(member.key)", path)
      }
    }
    if let value = root["issuers"] {
      guard let list = value.object else { throw HearthError("\(path): issuers must be an object.") }
      for member in list.members {
        issuers.append(try Self.issuer(member.key, member.value, "issuers.\(member.key)", path))
      }
    }
  }

  private static func mail(_ value: JSONValue, _ path: String) throws(HearthError) -> ConfiguredDelivery.Mail
  {
    let object = try object(value, "mail", path, ["command", "relay", "from"])
    let from = try text(object["from"], "mail.from", path)
    guard let sender = Mailbox(from) else {
      throw HearthError("\(path): mail.from must be an e-mail address, or a name with an address in <>.")
    }
    switch (object["command"], object["relay"]) {
    case (let value?, nil):
      let arguments = value.array?.compactMap(\.string) ?? []
      guard let program = arguments.first, program.hasPrefix("/"), arguments.count == value.array?.count
      else {
        throw HearthError(
          "\(path): mail.command must be an array of strings that begins with the path of a program.")
      }
      return ConfiguredDelivery.Mail(.command(arguments), from: sender)
    case (nil, let value?):
      return ConfiguredDelivery.Mail(.relay(try relay(value, "mail.relay", path)), from: sender)
    default: throw HearthError("\(path): mail must have either command or relay.")
    }
  }

  private static func relay(
    _ value: JSONValue, _ name: String, _ path: String
  ) throws(HearthError) -> SMTPRelay {
    let object = try object(
      value, name, path, ["host", "port", "tls", "user", "password", "certificates"])
    let host = try text(object["host"], name + ".host", path)
    var port = SMTPRelay.submissionPort
    if let value = object["port"] {
      guard let number = value.int, (1...65535).contains(number) else {
        throw HearthError("\(path): \(name).port must be a port number.")
      }
      port = Int(number)
    }
    var encryption = port == SMTPRelay.submissionsPort ? SMTPRelay.Encryption.implicit : .startTLS
    if let value = object["tls"] {
      guard let parsed = value.string.flatMap(SMTPRelay.Encryption.init(rawValue:)) else {
        let names = SMTPRelay.Encryption.allCases.map(\.rawValue).joined(separator: ", ")
        throw HearthError("\(path): \(name).tls must be one of \(names).")
      }
      encryption = parsed
    }
    var credentials: SMTPRelay.Credentials?
    if object["user"] != nil || object["password"] != nil {
      credentials = SMTPRelay.Credentials(
        user: try text(object["user"], name + ".user", path),
        password: try text(object["password"], name + ".password", path))
      guard credentials?.user.utf8.contains(0) == false, credentials?.password.utf8.contains(0) == false
      else {
        throw HearthError("\(path): \(name).user and \(name).password must not contain NUL.")
      }
    }
    let authorities = try object["certificates"].map { value throws(HearthError) in
      try text(value, name + ".certificates", path)
    }
    guard
      let relay = SMTPRelay(
        host: host, port: port, encryption: encryption, credentials: credentials, authorities: authorities)
    else { throw HearthError("\(path): \(name).user needs TLS: the password would be sent unencrypted.") }
    return relay
  }

  private static func provider(
    _ value: JSONValue, _ name: String, _ path: String
  ) throws(HearthError) -> OpenIDProviders.Provider {
    let object = try object(value, name, path, ["issuer", "audiences", "keys"])
    return OpenIDProviders.Provider(
      issuer: try text(object["issuer"], name + ".issuer", path),
      audiences: try audiences(object, name, path), keysURL: try keysURL(object, name, path))
  }

  private static func issuer(
    _ issuer: String, _ value: JSONValue, _ name: String, _ path: String
  ) throws(HearthError) -> TrustedIssuers.Issuer {
    let object = try object(value, name, path, ["audiences", "keys", "project"])
    guard !issuer.isEmpty else { throw HearthError("\(path): an issuer must not be empty.") }
    let project = try object["project"].map { value throws(HearthError) in
      try text(value, name + ".project", path)
    }
    return TrustedIssuers.Issuer(
      issuer: issuer, audiences: try audiences(object, name, path), project: project ?? "",
      keysURL: try keysURL(object, name, path))
  }

  private static func audiences(
    _ object: JSONObject, _ name: String, _ path: String
  ) throws(HearthError) -> [String] {
    let audiences = object["audiences"]?.array?.compactMap(\.string) ?? []
    guard !audiences.isEmpty, audiences.count == object["audiences"]?.array?.count else {
      throw HearthError("\(path): \(name).audiences must be an array of client IDs.")
    }
    return audiences
  }

  /// The URL of an issuer's public keys. Over unencrypted HTTP anyone on the network path could replace the keys, so HTTP is
  /// allowed on the same machine only.
  private static func keysURL(
    _ object: JSONObject, _ name: String, _ path: String
  ) throws(HearthError) -> String {
    let text = try url(object["keys"] ?? .null, name + ".keys", path)
    let isLocal = ["localhost", "127.0.0.1", "[::1]", "::1"].contains(URLComponents(string: text)?.host ?? "")
    guard text.hasPrefix("https://") || isLocal else {
      throw HearthError("\(path): \(name).keys must be an https URL, or an http URL of this machine.")
    }
    return text
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
      throw HearthError("\(path): \(name) must be a string.")
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
