// A service account: the identity of a server or an administrator, with the public keys that verify its tokens.

package import Access
import JSON

/// A service account of a project.
package struct ServiceAccount: Sendable {
  /// A key of the account. The server keeps the public half only.
  package struct Key: Sendable {
    /// The ID in the headers of tokens.
    package var id: String
    package var publicKey: RSAKey
    /// Seconds since the Unix epoch.
    package var createdAt: Int64
  }

  /// The account's name, in the form of an address.
  package var email: String
  package var project: String
  package var role: ServiceRole
  /// The URL of the token endpoint in the account's files. It is the audience of the account's assertions.
  package var tokenURI: String
  package var keys: [Key]
  /// Seconds since the Unix epoch.
  package var createdAt: Int64

  /// The address of an account.
  package static func email(name: String, project: String) -> String {
    "\(name)@\(project).iam.hearth.invalid"
  }

  /// Whether a name can be part of an address.
  package static func isValidName(_ name: String) -> Bool {
    (1...63).contains(name.utf8.count)
      && name.utf8.allSatisfy { byte in
        (0x61...0x7A).contains(byte) || (0x30...0x39).contains(byte) || byte == UInt8(ascii: "-")
      }
  }

  var storedForm: JSONObject {
    [
      "email": .string(email), "project": .string(project), "role": .string(role.rawValue),
      "tokenUri": .string(tokenURI),
      "createdAt": .int(createdAt),
      "keys": .array(
        keys.map { key in
          .object([
            "id": .string(key.id), "key": .string(Base64.encode(key.publicKey.der)),
            "createdAt": .int(key.createdAt),
          ])
        }),
    ]
  }

  init(
    email: String, project: String, role: ServiceRole, tokenURI: String, keys: [Key], createdAt: Int64
  ) {
    self.email = email
    self.project = project
    self.role = role
    self.tokenURI = tokenURI
    self.keys = keys
    self.createdAt = createdAt
  }

  init(storedForm object: JSONObject) throws {
    guard let email = object["email"]?.string, let project = object["project"]?.string,
      let role = object["role"]?.string.flatMap(ServiceRole.init(rawValue:)),
      let createdAt = object["createdAt"]?.int
    else { throw CorruptRow("a service account is incomplete") }
    var keys: [Key] = []
    for element in object["keys"]?.array ?? [] {
      guard let id = element["id"]?.string, let text = element["key"]?.string,
        let bytes = Base64.decode(text.utf8, .standard, paddedBy: [UInt8(ascii: "=")]),
        let publicKey = RSAKey(der: bytes), let created = element["createdAt"]?.int
      else { throw CorruptRow("a key of a service account cannot be read") }
      keys.append(Key(id: id, publicKey: publicKey, createdAt: created))
    }
    self.init(
      email: email, project: project, role: role, tokenURI: object["tokenUri"]?.string ?? "", keys: keys,
      createdAt: createdAt)
  }
}
