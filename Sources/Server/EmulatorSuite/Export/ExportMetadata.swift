// Encodes and decodes the metadata files of exports. The overall file names the file of each kind (a group of documents).
// The file of a kind names the output files, which contain the documents. Below, numbers are protobuf field numbers, braces
// contain nested messages, and `1: 2` is field 1 with the value 2.
//
//     overall, a log of two records: the version, one byte 0x33 | 1 kind {1 {1: 2, 3: 3}, 2 its file, 3 entities, 4 bytes}
//     kind: 1 {1 the export's name, 2 begin, 3 end, in microseconds} | 2 {1 "", 2 output file}…

import BlockLog
import FirestoreEndpoints
import FirestoreModel
import FirestoreWire
import NIOCore

/// Encodes and decodes the metadata files of an export.
enum ExportMetadata {
  static let version: UInt8 = 0x33
  static let kindDirectory = "all_namespaces/all_kinds"
  static let kindFile = "all_namespaces_all_kinds.export_metadata"
  static let outputFile = "output-0"
  static let overallSuffix = ".overall_export_metadata"
  /// Maximum size of a metadata file, in bytes: more than any export needs.
  static let maximumBytes = 4 << 20

  /// Encodes the overall file. For an empty export, it names no other file.
  static func overall(entities: Int, bytes: Int) -> [UInt8] {
    var writer = WireWriter(capacity: 128)
    if entities > 0 {
      let kind = writer.begin(1)
      let constant = writer.begin(1)
      writer.varint(1, 2)
      writer.varint(3, 3)
      writer.end(constant)
      writer.string(2, "\(kindDirectory)/\(kindFile)")
      writer.varint(3, UInt64(entities))
      writer.varint(4, UInt64(bytes))
      writer.end(kind)
    }
    var log = BlockLogWriter()
    return log.frame([version]) + log.frame(Array(writer.finish().readableBytesView))
  }

  /// Encodes the file of the only kind that this server's exports contain.
  static func kind(name: String, begin: Int64, end: Int64) -> [UInt8] {
    var writer = WireWriter(capacity: 128)
    let export = writer.begin(1)
    writer.string(1, name)
    writer.varint(2, UInt64(bitPattern: begin))
    writer.varint(3, UInt64(bitPattern: end))
    writer.end(export)
    let output = writer.begin(2)
    writer.string(1, "")
    writer.string(2, outputFile)
    writer.end(output)
    return Array(writer.finish().readableBytesView)
  }

  /// Returns the paths of kinds in an overall file, as stored.
  static func kinds(overall bytes: [UInt8]) throws -> [String] {
    let unsupported = FirestoreError.invalidArgument("Overall export metadata file version not supported")
    var reader = BlockLogReader()
    var rest = bytes[...]
    let read: (Int) -> [UInt8] = { count in
      defer { rest = rest.dropFirst(count) }
      return Array(rest.prefix(count))
    }
    guard let first = try? reader.next(read), first == [version] else { throw unsupported }
    guard let record = try reader.next(read) else { return [] }
    return try paths(in: record, field: 1)
  }

  /// Returns the paths of output files in a kind's file, as stored.
  static func outputs(kind bytes: [UInt8]) throws -> [String] { try paths(in: bytes, field: 2) }

  /// Returns the string in field 2 of every message in field `field`.
  private static func paths(in bytes: [UInt8], field: Int) throws -> [String] {
    try bytes.withUnsafeBytes { raw in
      var reader = ProtobufReader(raw)
      var paths: [String] = []
      while let tag = try reader.nextTag() {
        guard tag.field == field else {
          try reader.skip(tag)
          continue
        }
        var nested = try reader.message(tag)
        while let tag = try nested.nextTag() {
          if tag.field == 2 { paths.append(try nested.string(tag)) } else { try nested.skip(tag) }
        }
      }
      return paths
    }
  }
}
