/// A record of an export's log.
struct ExportRecord: Equatable {
  /// The offset in the log at which the record begins.
  var offset: Int
  var bytes: [UInt8]
}
