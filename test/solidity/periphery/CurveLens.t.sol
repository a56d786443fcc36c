// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ICurveLens} from "../../../contracts/interfaces/ICurveLens.sol";
import {Curves} from "../support/Curves.sol";
import {IMintableToken} from "../support/Interfaces.sol";
import {Platform} from "../support/Platform.sol";

/// @notice What the lens says is what the entrypoint does.
contract CurveLensTest is Platform {
    /// @dev Each run compares up to 32 levels, and so counts for many.
    /// hardhat-config: fuzz.runs = 500
    function testFuzz_LevelsAreQuotes(uint256 seed, bool isBuy, uint256 claimed) external {
        uint256[1] memory rng = [seed];
        _postRandom(rng);
        _take(rng, isBuy);
        (address tokenIn, address tokenOut) = _pair(isBuy);
        _leaveFree(tokenOut, bound(claimed, 0, 2 * _depth(isBuy) * (isBuy ? 1 : 3000)));

        ICurveLens.Depth memory d = lens.levels(tokenIn, tokenOut);
        assertEq(d.curveSeq, book.marketState(market).seq, "seq");
        assertEq(d.expiry, START + MAX_TTL_SEC, "expiry");
        assertEq(lens.expiry(tokenOut, tokenIn), d.expiry, "expiry alone");
        assertEq(d.maxIn, lens.maxIn(tokenIn, tokenOut), "maxIn alone");
        assertTrue(lens.isActive(tokenIn, tokenOut) == (d.maxIn != 0), "active");
        assertTrue((d.levels.length == 0) == (d.maxIn == 0), "some level or none");
        assertLe(d.levels.length, 32, "at most 32");
        uint256 reached = 0;
        for (uint256 i = 0; i < d.levels.length; ++i) {
            assertEq(d.levels[i].amountOut, _quote(isBuy, d.levels[i].amountIn), "level");
            assertTrue(d.levels[i].amountIn > reached, "rising");
            reached = d.levels[i].amountIn;
        }
        assertEq(reached, d.maxIn, "last level");
        assertEq(_quote(isBuy, d.maxIn + 1), 0, "no more than that");
        if (d.maxIn != 0) _swap(isBuy, d.maxIn);
    }

    /// @dev Between two levels the price is that of one segment, so any quote lies on the line through its ends, give or take what rounding
    /// to a unit is worth. Each run computes a whole curve.
    /// hardhat-config: fuzz.runs = 500
    function testFuzz_QuotesLieBetweenTheLevels(uint256 seed, bool isBuy, uint256 amount) external {
        uint256[1] memory rng = [seed];
        _postRandom(rng);
        _take(rng, isBuy);
        (address tokenIn, address tokenOut) = _pair(isBuy);
        ICurveLens.Depth memory d = lens.levels(tokenIn, tokenOut);
        if (d.maxIn == 0) return;
        amount = bound(amount, 1, d.maxIn);
        uint256 i = 0;
        while (d.levels[i].amountIn < amount) ++i;
        ICurveLens.Level memory from = i == 0 ? ICurveLens.Level(0, 0) : d.levels[i - 1];
        uint256 run = d.levels[i].amountIn - from.amountIn;
        uint256 rise = d.levels[i].amountOut - from.amountOut;
        uint256 onLine = from.amountOut + (rise * (amount - from.amountIn)) / run;
        // One quote unit on either side, at the price of this segment.
        uint256 tolerance = isBuy ? (3 * rise) / run + 3 : 3;
        uint256 quoted = _quote(isBuy, amount);
        assertLe(onLine, quoted + tolerance, "not below the line");
        assertLe(quoted, onLine + tolerance, "not above the line");
    }

    function test_ConsumptionIsWhatWasTakenSinceTheSnapshot() external {
        _postDefault();
        _swapExactOutput(true, 5e17);
        _swap(false, 2e18);
        (uint256 askBase, uint256 bidBase) = lens.consumption(address(base), address(quote));
        assertEq(askBase, 5e17, "asks");
        assertEq(bidBase, 2e18, "bids");
        assertEq(lens.levels(address(quote), address(base)).consumed, 5e17, "of the side that is bought from");
        assertEq(lens.levels(address(base), address(quote)).consumed, 2e18, "of the side that is sold to");
        _postDefault();
        (askBase, bidBase) = lens.consumption(address(quote), address(base));
        assertEq(askBase + bidBase, 0, "a snapshot that reflects it all");
    }

    function test_ExpiredHasNoLevelsButAnExpiry() external {
        _postDefault();
        assertTrue(lens.isActive(address(base), address(quote)), "live");
        vm.warp(START + MAX_TTL_SEC);
        ICurveLens.Depth memory d = lens.levels(address(base), address(quote));
        assertEq(d.levels.length + d.maxIn, 0, "dead");
        assertEq(d.expiry, START + MAX_TTL_SEC, "since then");
        assertTrue(!lens.isActive(address(base), address(quote)), "inactive");
    }

    function test_UnknownAndEmptyMarketsHaveNothing() external {
        ICurveLens.Depth memory d = lens.levels(address(base), STRANGER);
        assertEq(d.levels.length + d.maxIn + d.expiry + d.curveSeq + d.consumed, 0, "unknown");
        assertTrue(!lens.isActive(address(base), address(base)), "no pair");
        assertEq(lens.maxIn(address(base), address(quote)), 0, "before the first curve");
        _post(_fresh(_ladder(600_002, 3), new uint256[](0)));
        assertEq(lens.maxIn(address(base), address(quote)), 0, "an empty side");
        assertTrue(lens.isActive(address(quote), address(base)), "the other one");
    }

    function test_NoFreeLiquidityMeansInactive() external {
        _postDefault();
        _leaveFree(address(quote), 0);
        assertTrue(!lens.isActive(address(base), address(quote)), "nothing to pay with");
        assertTrue(lens.isActive(address(quote), address(base)), "the other way");
    }

    /// @dev Swaps of such an output can't be asked for by the output, but by the input.
    function test_OutputsAboveTheWidestAmount() external {
        IMintableToken cheap = _newToken("Cheap", 36);
        vm.prank(OWNER);
        bytes32 id = book.listMarket(address(base), address(cheap), 14, 1, 27, MAX_TTL_SEC);
        Curve memory c = _fresh(new uint256[](0), _ladder(599_998, 15));
        c.seq = 1;
        bytes memory data = bytes.concat(_blockRef(), _fullRecord(id, c));
        vm.prank(CURVE_POSTER);
        book.post(data);
        uint256 most = 15 * 0.819e18;
        _deposit(MAKER, cheap, 2 ** 127);
        assertEq(lens.maxIn(address(base), address(cheap)), most, "all");
        assertTrue(entrypoint.quote(address(base), address(cheap), most) > 2 ** 100, "wide");
        // A part of it, which is still wider than an amount may be.
        uint256 free = entrypoint.quote(address(base), address(cheap), most / 3);
        assertTrue(free > 2 ** 100, "still wide");
        _leaveFree(address(cheap), free);
        uint256 found = lens.maxIn(address(base), address(cheap));
        assertTrue(entrypoint.quote(address(base), address(cheap), found) != 0, "tradable");
        assertEq(entrypoint.quote(address(base), address(cheap), found + 1), 0, "one more is not");
        assertLe(most / 3, found, "at least that");
    }

    function test_PairsAreOrderedAndListed() external {
        ICurveLens.Pair[] memory pairs = lens.getPairs();
        assertEq(pairs.length, 1, "one");
        assertTrue(pairs[0].token0 < pairs[0].token1, "ordered");
        bool same = pairs[0].token0 == address(base) && pairs[0].token1 == address(quote);
        bool swapped = pairs[0].token0 == address(quote) && pairs[0].token1 == address(base);
        assertTrue(same || swapped, "the market");
        vm.prank(OWNER);
        book.listMarket(address(entrypoint), address(quote), 14, 1, 0, MAX_TTL_SEC);
        assertEq(lens.getPairs().length, 2, "two");
    }

    /* INTERNAL */

    function _postRandom(uint256[1] memory rng) private {
        uint256[][2] memory sides;
        for (uint256 side = 0; side < 2; ++side) {
            Curves.Segment[] memory s = new Curves.Segment[](draw(rng, 0, 31));
            uint256 offset = 0;
            for (uint256 i = 0; i < s.length; ++i) {
                s[i] = Curves.Segment(draw(rng, 1, 4095), draw(rng, 0, 3), offset);
                offset += draw(rng, 0, 500);
            }
            sides[side] = Curves.pack(7, side == 0 ? 600_001 : 600_000, s);
        }
        _post(_fresh(sides[0], sides[1]));
    }

    /// @dev A part of the side, or none of it, or all.
    function _take(uint256[1] memory rng, bool isBuy) private {
        uint256 amount = draw(rng, 0, _depth(isBuy));
        if (isBuy && _quoteExactOutput(true, amount) != 0) _swapExactOutput(true, amount);
        if (!isBuy && _quote(false, amount) != 0) _swap(false, amount);
    }

    function _leaveFree(address token, uint256 amount) private {
        uint256 free = custodian.availableLiquidity(token);
        if (amount >= free) return;
        uint256 basis = custodian.claimBasis(MAKER, token);
        vm.prank(CLAIM_POSTER);
        custodian.settleWithdraw(MAKER, token, free - amount, basis);
    }
}
