// The generated messages hold bytes as Foundation's `Data`; the model knows only arrays. This file is the
// one place where they meet.

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension [UInt8] {
  /// These bytes as the generated messages hold them.
  var messageBytes: Data { Data(self) }
}
