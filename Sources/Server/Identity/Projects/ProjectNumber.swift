// Computes project numbers, which some responses of the API contain in place of the project's ID.

/// The number of a project.
package enum ProjectNumber {
  /// A number of 12 digits, which is a hash of the ID (FNV-1a).
  package static func of(_ project: String) -> String {
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    for byte in project.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    return String(100_000_000_000 + hash % 900_000_000_000)
  }
}
