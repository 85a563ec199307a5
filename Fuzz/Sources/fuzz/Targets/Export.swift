// Fuzz target: exports of the emulator suite from untrusted sources. A document that can be read and stored is exported
// again as the same document. Records of any size are read from a log as they were written.

import BlockLog
import FirestoreModel

@testable import EmulatorSuite

/// The first two bytes are the position of the record in its block. The rest is an entity, a log, and the other
/// files of an export.
func fuzzExport(_ input: UnsafeRawBufferPointer) throws {
  let bytes = Array(input)
  _ = try? ExportMetadata.kinds(overall: bytes)
  _ = try? ExportMetadata.outputs(kind: bytes)
  _ = try? records(in: bytes)
  guard bytes.count >= 2 else { return }

  var log = BlockLogWriter()
  let before = [UInt8](
    repeating: 0, count: (Int(bytes[0]) << 8 | Int(bytes[1])) % (2 * BlockLogFormat.blockBytes))
  let record = Array(bytes.dropFirst(2))
  let framed = log.frame(before) + log.frame(record)
  try require((try? records(in: framed)) == [before, record], "a log returns other records than written")

  guard let entity = try? ExportEntity(record, into: "p"),
    let name = DocumentName(database: DatabaseName(project: "p"), path: entity.path),
    let parsed = try? DocumentName(parsing: name.description), parsed == name,
    (try? Write(.update(name, fields: entity.fields)).validate(in: name.database)) != nil
  else { return }
  let written = ExportEntity.encode(name, entity.fields)
  let again = try require(try? ExportEntity(written, into: "p"), "a written entity is rejected")
  try require(ExportEntity.encode(name, again.fields) == written, "a written entity is another entity")
}

private func records(in bytes: [UInt8]) throws -> [[UInt8]] {
  var reader = BlockLogReader()
  var rest = bytes[...]
  var records: [[UInt8]] = []
  while let record = try reader.next({ count in
    defer { rest = rest.dropFirst(count) }
    return Array(rest.prefix(count))
  }) { records.append(record) }
  return records
}
