// A block log reader decodes the records of a log in the block log format. Any damage is an error.
//
// Invariant: all returned bytes belong to fragments whose checksums match. A record needs no more memory than
// the size of its log.

/// Decodes the records of one log, fragment by fragment.
package struct BlockLogReader: Sendable {
  /// An error in a log. The messages are the same as those of the Firestore emulator.
  package struct Damage: Error, Equatable {
    package var message: String

    package init(message: String) { self.message = message }

    package static let truncated = Damage(message: "Invalid record")
    package static let tooLarge = Damage(message: "Invalid record: more than \(maximumRecordBytes) bytes")
    package static let checksum = Damage(message: "Checksum doesn't validate.")
  }

  /// Maximum size of a record, in bytes: the limit of protobuf's official runtimes. It must be that high,
  /// because an exported Firestore document can be much larger than its size limit. The export format repeats
  /// the field name for every element of an array. A 1 MiB array of booleans in a field with a name of 1,500
  /// bytes is exported as 1.6 GB.
  package static let maximumRecordBytes = Int(Int32.max)

  /// The offset of the next fragment.
  package private(set) var position = 0

  /// Creates a reader at the beginning of a log.
  package init() {}

  /// Returns the next record; nil at the end of the log.
  /// - Parameter read: returns the given number of bytes, fewer only at the end of the log.
  /// - Throws: ``Damage``, and errors of `read`.
  package mutating func next(_ read: (Int) throws -> [UInt8]) throws -> [UInt8]? {
    var record: [UInt8] = []
    var isOpen = false
    while true {
      let available = BlockLogFormat.blockBytes - position % BlockLogFormat.blockBytes
      if available < BlockLogFormat.headerBytes {
        let padding = try read(available)
        position += padding.count
        if padding.count == available { continue }
        // The log may end without padding if its last record ends close to the end of a block.
        guard !isOpen else { throw Damage.truncated }
        return nil
      }
      let headerBytes = try read(BlockLogFormat.headerBytes)
      if headerBytes.isEmpty, !isOpen { return nil }
      guard headerBytes.count == BlockLogFormat.headerBytes else { throw Damage.truncated }
      let header = headerBytes.withUnsafeBytes { FragmentHeader($0) }
      guard header.payloadBytes <= available - BlockLogFormat.headerBytes, let type = header.type else {
        throw Damage.truncated
      }
      let payload = try read(header.payloadBytes)
      guard payload.count == header.payloadBytes else { throw Damage.truncated }
      guard payload.withUnsafeBytes({ header.matches($0) }) else { throw Damage.checksum }
      position += BlockLogFormat.headerBytes + payload.count
      guard isOpen != type.beginsRecord else { throw Damage.truncated }
      guard record.count + payload.count <= Self.maximumRecordBytes else { throw Damage.tooLarge }
      record += payload
      if type.endsRecord { return record }
      isOpen = true
    }
  }
}
