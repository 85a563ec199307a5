// The Keychain user store: stores the signed-in user in the Keychain of Apple's platforms.

#if canImport(Security)
  import Foundation
  import Security

  /// Stores one generic password item. It is readable after the first unlock of the device, and is not copied
  /// to other devices.
  struct KeychainUserStore: UserStore {
    let service: String
    let account: String

    private var query: [CFString: Any] {
      [
        kSecClass: kSecClassGenericPassword, kSecAttrService: service, kSecAttrAccount: account,
        kSecUseDataProtectionKeychain: usesDataProtection,
      ]
    }

    /// Command-line programs on macOS have no entitlement for the data protection keychain.
    private var usesDataProtection: Bool {
      #if os(macOS)
        Bundle.main.bundleIdentifier != nil
      #else
        true
      #endif
    }

    func load() throws -> UserRecord? {
      var query = query
      query[kSecReturnData] = true
      query[kSecMatchLimit] = kSecMatchLimitOne
      var item: CFTypeRef?
      let status = SecItemCopyMatching(query as CFDictionary, &item)
      if status == errSecItemNotFound { return nil }
      guard status == errSecSuccess else {
        throw KeychainError(operation: "reading the user", status: status)
      }
      if let data = item as? Data, let record = try? JSONDecoder().decode(UserRecord.self, from: data),
        !record.uid.isEmpty
      {
        return record
      }
      try save(nil)
      throw UserStoreError.damaged("deleted from the Keychain")
    }

    func save(_ record: UserRecord?) throws {
      guard let record else {
        let status = SecItemDelete(query as CFDictionary)
        guard status == errSecSuccess || status == errSecItemNotFound else {
          throw KeychainError(operation: "deleting the user", status: status)
        }
        return
      }
      let values: [CFString: Any] = [
        kSecValueData: try JSONEncoder().encode(record),
        kSecAttrAccessible: kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly,
      ]
      var status = SecItemUpdate(query as CFDictionary, values as CFDictionary)
      if status == errSecItemNotFound {
        status = SecItemAdd(query.merging(values) { $1 } as CFDictionary, nil)
      }
      guard status == errSecSuccess else {
        throw KeychainError(operation: "storing the user", status: status)
      }
    }
  }

  /// A failure of the Keychain.
  struct KeychainError: Error, CustomStringConvertible {
    let operation: String
    let status: OSStatus

    var description: String {
      "\(operation) failed: \(SecCopyErrorMessageString(status, nil) as String? ?? "unknown") (\(status))"
    }
  }
#endif
