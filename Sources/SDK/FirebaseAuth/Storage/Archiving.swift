// Archives values for the NSSecureCoding conformances: one JSON value under one key.
//
// Google's archives have one key for each property. Archives of the two libraries are not exchangeable.

import Foundation

private let archiveKey = "value"

extension NSCoder {
  /// Encodes a value; an archive without a value fails to decode.
  func encodeValue(_ value: some Encodable) {
    guard let data = try? JSONEncoder().encode(value) else { return }
    encode(data as NSData, forKey: archiveKey)
  }

  /// Decodes a value; nil if the archive has none of this type.
  func decodeValue<Value: Decodable>(_ type: Value.Type) -> Value? {
    guard let data = decodeObject(of: NSData.self, forKey: archiveKey) else { return nil }
    return try? JSONDecoder().decode(type, from: data as Data)
  }
}
