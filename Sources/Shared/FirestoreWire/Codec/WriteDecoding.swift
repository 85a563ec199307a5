// Decodes writes directly into the model, without the generated messages.
//
// The reasons are speed and correctness. The generated messages keep fields in a dictionary of Swift strings, which
// treats two Unicode spellings of a letter as one key. This decoder keeps them as two fields.

import FirestoreModel

extension ProtobufReader {
  /// Reads a `Write` message to its end.
  mutating func write() throws(FirestoreError) -> Write {
    var operation: Write.Operation?
    var mask: MaskPaths?
    var transforms: [FieldTransform] = []
    var precondition: Precondition?
    while let tag = try nextTag() {
      switch tag.field {
      case 1:
        var nested = try message(tag)
        if case .update(let name, let fields)? = operation {
          let document = try nested.document(named: name)
          operation = .update(
            document.name, fields: MapValue(unsorted: fields.entries + document.fields.entries))
        } else {
          let document = try nested.document()
          operation = .update(document.name, fields: document.fields)
        }
      case 2:
        operation = .delete(try DocumentName(parsing: try string(tag)))
      case 3:
        var nested = try message(tag)
        try nested.mask(into: &mask, for: .write)
      case 4:
        var nested = try message(tag)
        precondition = try nested.precondition(onto: precondition)
      case 5:
        operation = .verify(try DocumentName(parsing: try string(tag)))
      case 6:
        var nested = try message(tag)
        operation = try nested.documentTransform(onto: operation)
      case 7:
        var nested = try message(tag)
        transforms.append(try nested.fieldTransform())
      default: try skip(tag)
      }
    }
    guard let operation else { throw .invalidArgument("empty write operation") }
    return Write(operation, mask: mask?.paths, transforms: transforms, precondition: precondition)
  }

  /// A `Precondition`; nil if it sets no condition.
  mutating func precondition(onto earlier: Precondition? = nil) throws(FirestoreError) -> Precondition? {
    var precondition = earlier
    while let tag = try nextTag() {
      switch tag.field {
      case 1:
        precondition = .exists(try varint(tag) != 0)
      case 2:
        var nested = try message(tag)
        if case .updateTime(let earlier)? = precondition {
          precondition = .updateTime(try nested.timestamp(onto: earlier))
        } else {
          precondition = .updateTime(try nested.timestamp())
        }
      default: try skip(tag)
      }
    }
    return precondition
  }

  /// A `DocumentTransform`.
  private mutating func documentTransform(onto earlier: Write.Operation?) throws(FirestoreError)
    -> Write.Operation
  {
    var name: DocumentName?
    var transforms: [FieldTransform] = []
    if case .transform(let document, let before)? = earlier { (name, transforms) = (document, before) }
    while let tag = try nextTag() {
      switch tag.field {
      case 1:
        name = try DocumentName(parsing: try string(tag))
      case 2:
        var nested = try message(tag)
        transforms.append(try nested.fieldTransform())
      default: try skip(tag)
      }
    }
    guard let name else { return .transform(try DocumentName(parsing: ""), transforms) }
    return .transform(name, transforms)
  }

  /// A `DocumentTransform.FieldTransform`.
  private mutating func fieldTransform() throws(FirestoreError) -> FieldTransform {
    var path = ""
    var operation: FieldTransform.Operation?
    while let tag = try nextTag() {
      switch tag.field {
      case 1:
        path = try string(tag)
      case 2:
        guard try varint(tag) == 1 else {
          throw .invalidArgument("Unknown server value in a field transform.")
        }
        operation = .serverTimestamp
      case 3...5:
        var nested = try message(tag)
        // If several numeric operands occur, the last one is used.
        let operand = try nested.value()
        operation =
          tag.field == 3 ? .increment(operand) : (tag.field == 4 ? .maximum(operand) : .minimum(operand))
      case 6, 7:
        var nested = try message(tag)
        let elements = try nested.array()
        operation =
          switch (tag.field, operation) {
          case (6, .appendMissing(let earlier)?): .appendMissing(earlier + elements)
          case (7, .removeAll(let earlier)?): .removeAll(earlier + elements)
          case (6, _): .appendMissing(elements)
          default: .removeAll(elements)
          }
      default: try skip(tag)
      }
    }
    guard let operation else { throw .invalidArgument("A field transform must name its type.") }
    return FieldTransform(try FieldPath(parsing: path), operation)
  }
}
