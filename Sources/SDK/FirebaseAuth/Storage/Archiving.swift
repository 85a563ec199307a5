// Archives values for the NSSecureCoding conformances, as one JSON value under one key.
//
// Google's archives have one key for each property, so the archives of the two libraries are not
// interchangeable.

import Foundation

private let archiveKey = "value"

extension NSCoder {
  /// Encodes a value. If that fails, the archive has no value and cannot be decoded.
  func encodeValue(_ value: some Encodable) {
    guard let data = try? JSONEncoder().encode(value) else { return }
    encode(data as NSData, forKey: archiveKey)
  }

  /// Decodes a value; nil if the archive has no value of this type.
  func decodeValue<Value: Decodable>(_ type: Value.Type) -> Value? {
    guard let data = decodeObject(of: NSData.self, forKey: archiveKey) else { return nil }
    return try? JSONDecoder().decode(type, from: data as Data)
  }
}
