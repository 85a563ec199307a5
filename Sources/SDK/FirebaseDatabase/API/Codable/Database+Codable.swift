// Encodes and decodes Codable values of the database.

public import FirebaseSharedSwift
import Foundation

extension Database {
  /// Encodes values for the database.
  public typealias Encoder = FirebaseDataEncoder

  /// Decodes values of the database.
  public typealias Decoder = FirebaseDataDecoder
}

extension DataSnapshot {
  /// Decodes the value.
  ///
  /// - Throws: `DecodingError` with the coding path of the value that does not match.
  public func data<T: Decodable>(as type: T.Type, decoder: Database.Decoder = Database.Decoder()) throws -> T
  {
    try decoder.decode(type, from: ValueWriter.value(node))
  }
}

extension DatabaseReference {
  /// Replaces the value with an encoded one.
  ///
  /// - Parameter completion: called on the callback queue when the server has responded.
  /// - Throws: `EncodingError` when the value cannot be encoded; nothing is written in this case.
  public func setValue<T: Encodable>(
    from value: T, encoder: Database.Encoder = Database.Encoder(),
    completion: (@Sendable ((any Error)?) -> Void)? = nil
  ) throws {
    let encoded = try encoder.encode(value)
    if let completion {
      setValue(encoded, withCompletionBlock: { error, _ in completion(error) })
    } else {
      setValue(encoded)
    }
  }
}
