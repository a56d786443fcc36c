// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// @dev Where an `ICurveBook.Fill` lies in memory. A variable of the struct type would be zeroed first, and then copied from the book's answer
/// member by member; a reference leaves the answer where it was returned. Offsets are those of the struct:
///
/// | 0x00    | 0x20     | 0x40  | 0x60       | 0x80        | 0xa0 | 0xc0     | 0xe0           | 0x100  | 0x120       |
/// |---------|----------|-------|------------|-------------|------|----------|----------------|--------|-------------|
/// | fillSeq | curveSeq | isBuy | baseAmount | quoteAmount | fee  | inputFee | consumedBefore | market | chargesFees |
type FillRef is uint256;

using FillRefLibrary for FillRef global;

library FillRefLibrary {
    /// @dev A new fill of `market`, in memory that is not reserved: its creator allocates nothing before it answers with the fill.
    function create(bytes32 market_) internal pure returns (FillRef fill) {
        assembly ("memory-safe") {
            fill := mload(0x40)
            mstore(add(fill, 0x100), market_)
        }
    }

    /// @dev What is known before the walk.
    function setCurve(FillRef self, uint256 curveSeq, bool isBuy, uint256 consumed, bool charged) internal pure {
        assembly ("memory-safe") {
            mstore(add(self, 0x20), curveSeq)
            mstore(add(self, 0x40), isBuy)
            mstore(add(self, 0xe0), consumed)
            mstore(add(self, 0x120), charged)
        }
    }

    /// @dev Completes the fill with what is known after the walk, and ends the whole external call with it as the answer. A struct of static
    /// members is encoded as it lies in memory. The two fees are zero, since that memory was never written to.
    function answer(FillRef self, uint256 fillSeq, uint256 baseAmount, uint256 quoteAmount) internal pure {
        assembly ("memory-safe") {
            mstore(self, fillSeq)
            mstore(add(self, 0x60), baseAmount)
            mstore(add(self, 0x80), quoteAmount)
            return(self, 0x140)
        }
    }

    /// @return units Base units of the side that were consumed before this fill.
    function consumedBefore(FillRef self) internal pure returns (uint256 units) {
        assembly ("memory-safe") {
            units := mload(add(self, 0xe0))
        }
    }

    /// @return amount What the taker pays: quote units when it buys, else base units.
    function amountIn(FillRef self) internal pure returns (uint256 amount) {
        // Same as fill.isBuy ? fill.quoteAmount : fill.baseAmount.
        assembly ("memory-safe") {
            amount := mload(add(self, add(0x60, shl(5, mload(add(self, 0x40))))))
        }
    }

    /// @return amount What the curve gives: base units when the taker buys, else quote units.
    function amountOut(FillRef self) internal pure returns (uint256 amount) {
        // Same as fill.isBuy ? fill.baseAmount : fill.quoteAmount.
        assembly ("memory-safe") {
            amount := mload(add(self, sub(0x80, shl(5, mload(add(self, 0x40))))))
        }
    }

    /// @dev `amountIn` and `amountOut` at once.
    function amounts(FillRef self) internal pure returns (uint256 amountIn_, uint256 amountOut_) {
        assembly ("memory-safe") {
            let turn := shl(5, mload(add(self, 0x40)))
            amountIn_ := mload(add(self, add(0x60, turn)))
            amountOut_ := mload(sub(add(self, 0x80), turn))
        }
    }

    function chargesFees(FillRef self) internal pure returns (bool charged) {
        assembly ("memory-safe") {
            charged := mload(add(self, 0x120))
        }
    }

    function market(FillRef self) internal pure returns (bytes32 id) {
        assembly ("memory-safe") {
            id := mload(add(self, 0x100))
        }
    }

    function setFee(FillRef self, uint256 amount) internal pure {
        assembly ("memory-safe") {
            mstore(add(self, 0xa0), amount)
        }
    }

    function setInputFee(FillRef self, uint256 amount) internal pure {
        assembly ("memory-safe") {
            mstore(add(self, 0xc0), amount)
        }
    }
}
