// The key layout of a project's identity database. A key is a letter for the kind of row, followed by components.
// A component is UTF-8 text that ends with 0x00 0x01; a 0x00 byte inside it becomes 0x00 0xFF. Keys of one tenant are
// therefore contiguous, and accounts are in the byte order of their IDs. Accounts of the project itself have the empty
// tenant ID.
//
//   'a' tenant, localId                       the account, as JSON
//   'e' tenant, e-mail                        localId
//   'i' tenant, initial e-mail                no longer written; removed with all accounts
//   'n' tenant, phone number                  localId
//   'p' tenant, provider ID, raw ID           localId
//   'm' tenant, provider's e-mail, localId    localId: several accounts may have the same address
//   'k' tenant, passkey credential ID         localId
//   'o' tenant, code                          an out-of-band code, as JSON
//   's' tenant, session                       a verification of a phone number, as JSON
//   'r' tenant, localId                       a revocation of tokens, as JSON; localId is empty for the entire tenant
//   'c'                                       the settings of the project, as JSON
//   't' tenant                                the settings of the tenant, as JSON
//   'y' key ID                                a signing key, as JSON
//   'v' e-mail                                a service account, as JSON
//   'x'                                       the secret that authenticates sealed tokens, 32 bytes
//
// Example: the e-mail row of a@b.c without a tenant is 65 00 01 61 40 62 2e 63 00 01.

import OrderedStore

/// Makes the keys of a project's identity database.
enum IdentityKeyLayout {
  enum Kind: UInt8, CaseIterable {
    case account = 0x61
    case email = 0x65
    case initialEmail = 0x69
    case phoneNumber = 0x6E
    case provider = 0x70
    case providerEmail = 0x6D
    case passkey = 0x6B
    case code = 0x6F
    case phoneSession = 0x73
    case revocation = 0x72
    case settings = 0x63
    case tenant = 0x74
    case signingKey = 0x79
    case serviceAccount = 0x76
    case secret = 0x78
  }

  /// The kinds of rows that belong to accounts.
  static let accountKinds: [Kind] = [
    .account, .email, .initialEmail, .phoneNumber, .provider, .providerEmail, .passkey,
  ]

  /// The key of a row, or the prefix of all keys that begin with these components.
  static func key(_ kind: Kind, _ components: String...) -> Key {
    var key: Key = [kind.rawValue]
    for component in components {
      for byte in component.utf8 {
        key.append(byte)
        if byte == 0 { key.append(0xFF) }
      }
      key.append(0)
      key.append(1)
    }
    return key
  }
}
