// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {Curves} from "./Curves.sol";
import {Test} from "./Test.sol";

/// @notice Random sides of curves, from everyday ones to the edges of every field.
abstract contract RandomCurves is Test {
    struct Random {
        uint256[] words;
        uint256 lotUnits;
        uint256 tickLotUnits;
        /// @dev Base units.
        uint256 depth;
    }

    /// @dev Prices rise with the knots on asks and fall on bids, as a real curve's do.
    function randomCurve(uint256 seed, bool ask) internal pure returns (Random memory c) {
        uint256[1] memory rng = [seed];
        (c.lotUnits, c.tickLotUnits) = randomGrid(rng);
        c.words = randomSide(rng);
        c.depth = Curves.depth(c.words, ask, c.lotUnits);
    }

    /// @dev Half of the grids are those of real pairs: WETH-USDC, WETH-DAI, cbBTC-USDC, a coarse one.
    function randomGrid(uint256[1] memory rng) internal pure returns (uint256 lotUnits, uint256 tickLotUnits) {
        uint256 kind = draw(rng, 0, 7);
        if (kind == 0) return (10 ** 14, 1);
        if (kind == 1) return (10 ** 14, 10 ** 12);
        if (kind == 2) return (10 ** 3, 10);
        if (kind == 3) return (1, 10 ** 10);
        return (10 ** draw(rng, 0, 18), draw(rng, 1, 1023) * 10 ** draw(rng, 0, draw(rng, 0, 31)));
    }

    function randomSide(uint256[1] memory rng) internal pure returns (uint256[] memory) {
        Curves.Segment[] memory segments = new Curves.Segment[](draw(rng, 0, 31));
        bool wide = draw(rng, 0, 3) == 0;
        uint256 offset = 0;
        for (uint256 i = 0; i < segments.length; ++i) {
            offset += draw(rng, 0, wide ? 65535 - offset : 2000);
            segments[i] = Curves.Segment(draw(rng, 1, 4095), draw(rng, 0, wide ? 15 : 4), offset);
        }
        uint256 shift = draw(rng, 0, wide ? 15 : 7);
        // A base below the largest offset makes bids end early, which is allowed.
        uint256 base = wide ? draw(rng, 0, 2 ** 25 - 1) : draw(rng, 70_000, 2 ** 24);
        return Curves.pack(shift, base, segments);
    }
}
