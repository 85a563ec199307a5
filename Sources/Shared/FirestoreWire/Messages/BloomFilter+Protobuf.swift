// Converts bloom filters between the generated messages and the model.

public import FirestoreModel
public import FirestoreProtobuf

extension BloomFilter {
  /// The filter in a message; nil if its numbers are inconsistent. The caller then proceeds without a filter.
  public init?(_ message: Google_Firestore_V1_BloomFilter) {
    self.init(
      bitmap: [UInt8](message.bits.bitmap), padding: Int(message.bits.padding),
      hashCount: Int(message.hashCount))
  }
}

extension Google_Firestore_V1_BloomFilter {
  /// The message for a filter.
  public init(_ filter: BloomFilter) {
    self.init()
    bits.bitmap = filter.bitmap.messageBytes
    bits.padding = Int32(clamping: filter.padding)
    hashCount = Int32(clamping: filter.hashCount)
  }
}
